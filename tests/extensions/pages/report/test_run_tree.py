"""The tree of a run: its steps, tasks and turns by title, each where it belongs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from codex_multi_role.extensions.pages.report.entries import Branch, Entries, Leaf, run_tree
from codex_multi_role.presentation.course import Course
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


def tree(tmp_path: Path, events: list[RunEvent], *, alive: bool = True) -> list[Branch | Leaf]:
    folder = RunFolder.create(tmp_path / "runs", "first")
    Questions(folder.path).ask(Question("ok.1", "Ship it?", "", events[-1].at, None, None))
    course = Course.of(events)
    return run_tree(course, Entries(folder, course, 1000, alive=alive), partial(course.tone_of, alive=alive))


def lines(parts: list[Branch | Leaf], depth: int = 0) -> list[tuple[int, str, str, str]]:
    found = []
    for part in parts:
        found.append((depth, part.label, part.tone, part.id))
        found += lines(part.parts, depth + 1) if isinstance(part, Branch) else []
    return found


def test_everything_is_below_what_it_belongs_to(tmp_path: Path) -> None:
    assert lines(tree(tmp_path, told())) == [
        (0, "each", "good", "each.1"),
        (1, "T0 Title 0", "bad", "each.1.0"),
        (2, "coder 1", "good", "turn-coder-1"),
        (2, "tests 001", "bad", "turn-coder-1"),
        (1, "T1 Title 1", "busy", "each.1.1"),
        (2, "coder 2", "busy", "turn-coder-2"),
        (0, "ok", "warn", "ok.1"),
        (1, "question", "warn", "question-ok.1"),
    ]


def test_nothing_is_at_work_in_a_run_without_a_process(tmp_path: Path) -> None:
    assert "busy" not in {tone for _, _, tone, _ in lines(tree(tmp_path, told(), alive=False))}


def test_what_went_well_in_a_long_run_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.extensions.pages.report.entries.OPEN_BELOW", 1)
    each, ok = tree(tmp_path, told())
    assert isinstance(each, Branch)
    assert isinstance(ok, Branch)
    assert (each.is_open, ok.is_open) == (False, True)
    assert [isinstance(part, Branch) and part.is_open for part in each.parts] == [True, True]
