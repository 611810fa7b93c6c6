"""The ends of turns that a killed session did not publish."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from codex_multi_role.presentation.course import Course
from codex_multi_role.run_folder import EventLog, RunEvent, RunFolder, TurnFolder, close_unfinished, read_events
from codex_multi_role.run_folder import events as e
from codex_multi_role.run_folder.states import unpublished_ends
from tests.support.recorded_runs import in_order, started, turn

SPENT = {"tokens": {"input": 90, "output": 10}, "cost": 0.4, "worked_seconds": 7.0}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "run")


def publish(run: RunFolder, events: Iterable[RunEvent]) -> None:
    log = EventLog(run.events_path, run.redact)
    log.publish(*events)
    log.close()


def killed(run: RunFolder) -> list[RunEvent]:
    """A session whose second turn ran when it was killed; returns its events."""
    TurnFolder.create(run, "planner").write_result({"status": "completed", **SPENT})
    TurnFolder.create(run, "implementer").write_running(SPENT)
    happened = in_order(started(), e.StepStarted("team", 1, 1), *turn("planner", 1, 1), *turn("implementer", 1, 1)[:2])
    publish(run, happened)
    close_unfinished(run)
    return happened


def test_killed_turn_ends_with_what_was_recorded_of_it(run: RunFolder) -> None:
    last = killed(run)[-1].at
    words = ("interrupted", "killed", "the run was killed during this turn")
    [end] = unpublished_ends(run)
    assert end == e.TurnEnded("implementer", 1, *words, 90, 10, 0.0, "", worked_seconds=7.0, cost=0.4, at=last)
    publish(run, [end])
    assert unpublished_ends(run) == []


def test_finished_turn_ends_as_it_was_recorded(run: RunFolder) -> None:
    """The kill came between the record and the event."""
    killed(run)
    finished = TurnFolder.of(run, "implementer", 1)
    origin = {"run_id": "earlier", "role": "implementer", "turn": 3}
    finished.write_result({"status": "completed", "outcome": "completed", "reused_from": origin})
    finished.write_handoff({"summary": "built"})
    [end] = unpublished_ends(run)
    assert (end.status, end.summary, end.reused_from) == ("completed", "built", "earlier/implementer/3")


def test_turn_that_never_started_has_no_end(run: RunFolder) -> None:
    TurnFolder.create(run, "planner").write_running({})
    close_unfinished(run)
    assert unpublished_ends(run) == []


def test_roles_and_steps_of_a_resumed_run_include_killed_turns(run: RunFolder) -> None:
    last = killed(run)[-1].at
    publish(run, [*unpublished_ends(run), started(resumed=True)])
    course = Course.of(read_events(run.events_path))
    assert [float(role.cost.amount) for role in course.roles.values()] == [0.42, 0.4]
    assert float(course.step_costs["team"].amount) == 0.82
    assert course.roles["implementer"].state == "interrupted"
    assert [role.cycle for role in course.roles.values()] == [1, 0]
    assert (course.turns["implementer", 1].ended, course.turns["implementer", 1].status) == (last, "interrupted")
