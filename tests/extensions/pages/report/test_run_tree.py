"""The tree of a run: its steps, tasks and turns by title, each where it belongs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role.extensions.pages.report import run_tree
from codex_multi_role.extensions.pages.report.entries import Entries
from codex_multi_role.extensions.pages.report.run_tree import Branch, Leaf, RunTree
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import GLYPHS
from codex_multi_role.run_folder import Question, Questions, RunEvent, RunFolder
from codex_multi_role.run_folder import events as e
from tests.support.recorded_runs import in_order, started

pytestmark = pytest.mark.pure
TASKS = ("each.1.0", "each.1.1")


def told() -> list[RunEvent]:
    """A step with two tasks, of which one has failed, its tests, and a question."""
    return in_order(
        started(),
        e.StepStarted("each", 1, 1),
        *(e.StateChanged(unit, f"T{n}", "IN_PROGRESS", "", title=f"Title {n}") for n, unit in enumerate(TASKS)),
        *(e.TurnStarted("coder", n + 1, 1, 1, None, unit=unit) for n, unit in enumerate(TASKS)),
        e.TurnEnded("coder", 1, "completed", "completed", "", 1, 1, 1.0, "made it"),
        e.TestsStarted(1, "coder", 1),
        e.TestsEnded(1, "failed", 3, 1, 0, 0, 0.4, ["test_a::test_one"]),
        e.StateChanged(TASKS[0], "T0", "FAILED", "its tests fail"),
        e.StepStarted("ok", 1, 1),
        e.ReviewAsked("ok.1", "Ship it?"),
    )


def tree(tmp_path: Path, events: list[RunEvent], *shown: str, alive: bool = True) -> RunTree:
    folder = RunFolder.create(tmp_path / "runs", "first")
    Questions(folder.path).ask(Question("ok.1", "Ship it?", "", events[-1].at, None, None))
    course = Course.of(events)
    entries = Entries(folder, course, 1000, alive=alive)
    return RunTree(course, entries, partial(course.tone_of, alive=alive), *shown)


def lines(parts: list[Branch | Leaf], depth: int = 0) -> list[tuple[int, str, str, str]]:
    found = []
    for part in parts:
        found.append((depth, part.label, part.tone, part.id))
        found += lines(part.parts, depth + 1) if isinstance(part, Branch) else []
    return found


def test_everything_is_below_what_it_belongs_to(tmp_path: Path) -> None:
    assert lines(tree(tmp_path, told()).parts) == [
        (0, "each", "good", "each.1"),
        (1, "T0 Title 0", "bad", "each.1.0"),
        (2, "coder 1", "good", "turn-coder-1"),
        (2, "tests 001", "bad", "tests-001"),
        (1, "T1 Title 1", "busy", "each.1.1"),
        (2, "coder 2", "busy", "turn-coder-2"),
        (0, "ok", "asks", "ok.1"),
        (1, "question", "asks", "question-ok.1"),
    ]


def test_nothing_is_at_work_in_a_run_without_a_process(tmp_path: Path) -> None:
    assert "busy" not in {tone for _, _, tone, _ in lines(tree(tmp_path, told(), alive=False).parts)}


OPENED = [
    ("", []),
    ("tests-001", ["~0", "each.1", "each.1~0", "each.1.0", "each.1.0~1"]),
    ("each.1~1", ["~0", "each.1", "each.1~1"]),
    ("nothing", []),
]


@pytest.mark.parametrize(("shown", "opened"), OPENED)
def test_long_run_shows_what_is_wanted_and_the_latest_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, opened: list[str]
) -> None:
    """Branches of many parts are divided into ranges."""
    monkeypatch.setattr(run_tree, "OPEN_BELOW", 1)
    monkeypatch.setattr(run_tree, "MOST_PARTS", 1)
    long = tree(tmp_path, told(), shown)
    assert [branch.id for branch in opened_in(long.parts)] == [*opened, "~1", "ok.1"]
    first, second = long.parts
    assert (first.label, first.tone, second.label, second.tone) == ("each to each", "good", "ok to ok", "asks")
    found = long.branch("each.1~0")
    assert found is not None
    assert [part.id for part in found.parts] == ["each.1.0"]
    assert long.branch("each.1~2") is long.branch("nowhere~0") is None


def test_tasks_of_every_tone_can_share_a_range() -> None:
    assert {*run_tree.TONES} == {*GLYPHS}


def opened_in(parts: list[Branch | Leaf]) -> Iterator[Branch]:
    for part in parts:
        if isinstance(part, Branch) and part.is_open:
            yield part
            yield from opened_in(part.parts)
