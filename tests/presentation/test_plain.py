from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder import events as e
from tests.support.recorded_runs import BEGAN, in_order, started, turn


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def lines_of(*events: RunEvent) -> list[str]:
    plain = PlainLines(Course())
    return [line for record in in_order(started(playbook=None), *events) for line in plain.of(record)][2:]


@dataclass(frozen=True)
class WordsCounted(e.AddedEvent):
    words: str = ""

    def in_words(self) -> str:
        return f"{self.words[0]}{self.words[1:]}"


@pytest.mark.parametrize(
    ("words", "line"),
    [("12 words", "12 words"), ("", "added.words_counted cannot be shown: IndexError"), ("\x1b[2J", "[2J")],
)
def test_event_of_an_extension_says_its_words(words: str, line: str) -> None:
    """And its mistakes end no run and no view."""
    event = WordsCounted(words, at="2026-01-31T10:15:09.000+00:00")
    [shown] = PlainLines(Course()).of(event)
    assert line in shown
    assert shown.isprintable()
    assert line in Course.of([event]).notes[0].words


def test_killed_turn_has_no_duration() -> None:
    reason = "the run was killed during this turn"
    end = e.TurnEnded("one", 1, "interrupted", "killed", reason, 90, 10, 0.0, "", at="2026-01-31T10:15:09.000+00:00")
    [line] = PlainLines(Course()).of(end)
    assert line == f"10:15:09  one: turn 1 interrupted (killed: {reason}), 90 tokens in, 10 out"


def test_every_event_type_can_be_shown() -> None:
    assert lines_of(e.ProcessesStarting(["a", "b"])) == ["10:15:01  starting 2 Codex processes"]
    told = lines_of(
        e.RoleStarted("planner", 1, "t", 0.1, True),
        e.Approval("planner", 1, "item/fileChange", "decline", "roman.py"),
        e.ToolCalled("planner", 1, "ask_user", True, 3.0),
        e.ToolCalled("planner", 1, "ask_user", False, 0.1),
        e.ReplyRepaired("planner", 1),
        e.RoleRestarted("planner", "it crashed"),
        e.RoleSkipped("planner", "it timed out"),
        e.ProtectedRestored("planner", 1, ["tests/a.py", "tests/b.py"]),
    )
    assert [line.split("planner: ")[1] for line in told] == [
        "ready again, its conversation restored, after 0.1 s (process 1)",
        "decline item/fileChange: roman.py",
        "tool ask_user answered in 3.0 s",
        "tool ask_user failed in 0.1 s",
        "the damaged answer of turn 1 was repaired without asking again",
        "restarted: it crashed",
        "skipped: it timed out; the run continues without it",
        "protected, restored: tests/a.py, tests/b.py",
    ]


def test_python_of_the_tests_is_named_if_it_is_known() -> None:
    def lines(python: dict[str, str]) -> list[str]:
        begun = e.RunStarted("r", "g", "cycles", 1, [], "/w", "/f", None, False, python=python, at=BEGAN.isoformat())
        return [line for line in PlainLines(Course()).of(begun) if "Python" in line]

    known = {"path": "/usr/bin/python3", "version": "3.11.7", "source": "PATH"}
    assert lines(known) == ["10:15:00  tests run with Python 3.11.7 (PATH): /usr/bin/python3"]
    assert lines({**known, "version": ""}) == lines({"version": "3.11.7"}) == lines({}) == []


@pytest.mark.parametrize("at", ["", "2026-01-31T10:16:00+00:00"])
def test_event_that_cannot_be_read_has_no_line(at: str) -> None:
    assert PlainLines(Course()).of(e.UnknownEvent(at=at)) == []


def test_cycle_is_announced_once() -> None:
    told = lines_of(e.StepStarted("team", 1, 1), *turn("planner", 1, 1), *turn("implementer", 1, 1))
    assert len([line for line in told if "cycle 1 of 3" in line]) == 1


@pytest.mark.parametrize("cycles", [0, 1])
def test_run_without_cycles_announces_none(cycles: int) -> None:
    plain = PlainLines(Course())
    begun = replace(started(), cycles=cycles)
    lines = [line for event in in_order(begun, e.StepStarted("team", 1, 1)) for line in plain.of(event)]
    assert lines[0].endswith("flow cycles, 1 cycle" if cycles else "flow cycles")
    assert not any("cycle 1" in line for line in lines)


def test_fork_says_where_it_comes_from() -> None:
    assert lines_of(e.RunForked("forked from first before team:2")) == ["10:15:01  forked from first before team:2"]


def test_turn_in_a_fan_out_names_its_task() -> None:
    asked = e.TurnStarted("solver.2", 1, 1, 2, None, unit="solve.1.0")
    told = lines_of(e.StateChanged("solve.1.0", "parser", "IN_PROGRESS", ""), asked)
    assert told[-1].endswith("  solver.2: turn 1 starts, attempt 2, for task parser")
