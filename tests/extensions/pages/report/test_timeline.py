"""The timeline: real times, and pauses in which nothing was done cut out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.pages.report.timeline import MOST_LANES, NARROWEST, Scale, Timeline, timeline
from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import Question, RunEvent
from codex_multi_role.run_folder import events as e
from tests.support.recorded_runs import started, whole_run


def drawing(course: Course, questions: Sequence[Question], *, alive: bool = False) -> Timeline | None:
    return timeline(course, questions, partial(course.tone_of, alive=alive))


BEGAN = datetime(2026, 1, 31, 10, 15, tzinfo=UTC)


def at(second: float, event: RunEvent) -> RunEvent:
    return replace(event, at=(BEGAN + timedelta(seconds=second)).isoformat(timespec="milliseconds"))


def turn(role: str, number: int, begin: float, end: float, status: str = "completed") -> list[RunEvent]:
    ended = e.TurnEnded(role, number, status, status, "", 1, 1, end - begin, "")
    return [at(begin, e.TurnStarted(role, number, 1, 1, None)), at(end, ended)]


def test_lanes_are_the_steps_each_role_and_the_tests() -> None:
    drawn = drawing(Course.of(whole_run()), [])
    assert drawn is not None
    assert [(lane.name, lane.kind, len(lane.bars)) for lane in drawn.lanes] == [
        ("flow", "flow", 2),
        ("planner", "role", 2),
        ("implementer", "role", 3),
        ("tests 001", "tests", 1),
        ("tests 002", "tests", 1),
    ]
    assert [bar.label for bar in drawn.lanes[0].bars] == ["team", "team x2"]
    assert [lane.bars[0].label for lane in drawn.lanes[3:]] == ["failed: 3 passed, 1 failed", "passed: 4 passed"]
    assert [bar.tone for bar in drawn.lanes[2].bars] == ["bad", "good", "good"]
    assert drawn.lanes[2].bars[1].target == "turn-implementer-2"
    assert drawn.lanes[2].bars[1].title == "implementer, turn 2: completed, 2.0 s"


def test_what_is_done_at_once_lies_side_by_side() -> None:
    drawn = drawing(Course.of([*turn("a", 1, 0, 10), *turn("b", 1, 5, 15, "stalled")]), [])
    assert drawn is not None
    first, second = (lane.bars[0] for lane in drawn.lanes)
    assert first.x == 0
    assert first.width == pytest.approx(66.667, abs=0.01)
    assert second.x == pytest.approx(33.333, abs=0.01)
    assert second.tone == "bad"


def test_night_between_two_sessions_is_cut_out_and_said() -> None:
    night = 9 * 3600
    drawn = drawing(Course.of([*turn("a", 1, 0, 100), *turn("a", 2, night, night + 100)]), [])
    assert drawn is not None
    first, second = drawn.lanes[0].bars
    assert first.width == pytest.approx(second.width)
    assert second.x - first.width < 5
    assert [cut.words for cut in drawn.cuts] == ["8 h 58 min"]
    assert drawn.ticks[-1].words.startswith("+9 h")


def test_turn_without_an_end_lasts_to_the_last_that_is_known() -> None:
    drawn = drawing(Course.of([*turn("a", 1, 0, 10), *turn("b", 1, 10, 20)[:1], at(20, e.Warning("x"))]), [])
    assert drawn is not None
    bar = drawn.lanes[1].bars[0]
    assert (bar.tone, bar.title) == ("warn", "b, turn 1: no end, 10 s")
    assert bar.x + bar.width == pytest.approx(100)


def test_killed_work_ends_with_its_session_after_resume() -> None:
    """A turn or test run that a kill interrupted is drawn up to the end of its session."""
    began, night = turn("a", 1, 0, 0)[0], 9 * 3600
    killed = [began, at(5, e.TestsStarted(1, "", 0)), at(10, e.Warning("the last that it told"))]
    drawn = drawing(Course.of([*killed, at(night, started(resumed=True)), *turn("a", 2, night, night + 10)]), [])
    assert drawn is not None
    roles, tests = drawn.lanes
    assert [bar.title for bar in roles.bars] == ["a, turn 1: interrupted, 10 s", "a, turn 2: completed, 10 s"]
    assert [(bar.title, bar.tone) for bar in tests.bars] == [("tests 001: interrupted", "warn")]
    assert roles.bars[0].tone == "warn"
    assert roles.bars[0].width == pytest.approx(roles.bars[1].width)


def test_clock_set_back_draws_nothing_before_start() -> None:
    drawn = drawing(Course.of([*turn("a", 1, 10, 5), *turn("b", 1, 80, 90)]), [])
    assert drawn is not None
    assert drawn.ticks[0].words == "+0.0 s"
    assert drawn.lanes[0].bars[0].title == "a, turn 1: completed, 0.0 s"
    assert all(0 <= bar.x <= bar.x + bar.width <= 100 for lane in drawn.lanes for bar in lane.bars)


def test_questions_are_drawn_where_the_events_are_gone() -> None:
    moments = ["2026-01-31T10:15:00.000+00:00", "2026-01-31T10:16:00.000+00:00"]
    drawn = drawing(Course.of([]), [Question(f"ok.{at}", "Go on?", "", at, None, None) for at in moments])
    assert drawn is not None
    assert [bar.x for bar in drawn.lanes[0].bars] == [0, 100 - NARROWEST]


def work(tasks: int, *, done: int = 0) -> list[RunEvent]:
    """A fan-out of so many tasks, of which the first ``done`` have ended."""
    told: list[RunEvent] = [at(0, started()), at(0, e.StepStarted("each", 1, 1))]
    for number in range(tasks):
        unit = f"each.1.{number}"
        told += [at(number, e.StateChanged(unit, f"T{number}", "IN_PROGRESS", "", title=f"Task {number}"))]
        told += [at(number, e.TurnStarted("coder", number + 1, 1, 1, None, unit=unit))]
    for number in range(done):
        told += [at(tasks + number, e.StateChanged(f"each.1.{number}", f"T{number}", "COMPLETED", ""))]
    return told


def test_each_task_has_a_lane_in_the_colour_of_its_state() -> None:
    drawn = drawing(Course.of(work(3, done=1)), [], alive=True)
    assert drawn is not None
    lanes = [(lane.name, lane.bars[0].tone, lane.bars[0].target) for lane in drawn.lanes if lane.kind == "task"]
    assert lanes == [(f"T{n} Task {n}", "busy" if n else "good", f"turn-coder-{n + 1}") for n in range(3)]
    assert [bar.tone for bar in drawn.lanes[1].bars] == ["warn", "busy", "busy"], (
        "a turn without an end in a task that has one"
    )


def test_very_many_tasks_share_a_lane() -> None:
    drawn = drawing(Course.of(work(MOST_LANES + 1)), [])
    assert drawn is not None
    assert [(lane.name, len(lane.bars)) for lane in drawn.lanes if lane.kind == "task"] == [("tasks", MOST_LANES + 1)]


def test_run_without_started_work_has_no_timeline() -> None:
    assert drawing(Course.of([]), []) is None


seconds = st.floats(0, 1e6, allow_nan=False)


@given(st.lists(st.tuples(seconds, seconds), min_size=1))
def test_scale_keeps_the_order_and_ends_at_a_hundred(spans: list[tuple[float, float]]) -> None:
    scale = Scale(spans)
    moments = sorted(moment for span in spans for moment in span)
    places = [scale.place(moment) for moment in moments]
    assert all(before <= after + 1e-9 for before, after in pairwise(places))
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in places)


def test_event_that_cannot_be_read_changes_nothing() -> None:
    course = Course.of([e.UnknownEvent(), *turn("a", 1, 0, 10), e.UnknownEvent()], [e.UnknownEvent()])
    plain = Course.of(turn("a", 1, 0, 10))
    assert (course.began, course.at, course.turns) == (plain.began, plain.at, plain.turns)
