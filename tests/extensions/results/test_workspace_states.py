"""The states of a workspace, derived from events alone."""

from __future__ import annotations

from codex_multi_role.extensions.results.workspace_states import Change, CopyStates, states_of
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder import events as e


def step(state: str) -> RunEvent:
    return e.StepStarted("team", 1, 1, 1, state)


def began(role: str, turn: int, unit: str = "") -> RunEvent:
    return e.TurnStarted(role, turn, 1, 1, None, unit=unit)


def ended(role: str, turn: int) -> RunEvent:
    return e.TurnEnded(role, turn, "completed", "completed", "", 1, 1, 0.1, "")


def last(state: str) -> RunEvent:
    return e.RunEnded("succeeded", "done", "", 0, {}, "", workspace=state)


def test_turns_and_what_came_between_them() -> None:
    trees = {("a", 1): ("s0", "s1"), ("b", 1): ("s2", "s3")}
    events = [step("s0"), began("a", 1), ended("a", 1), began("b", 1), ended("b", 1), step("s3"), last("s4")]
    states = states_of(events, lambda role, turn: trees.get((role, turn)), {})
    assert (states.first, states.last) == ("s0", "s4")
    assert states.changes == (
        Change("s0", "s1", "a", 1),
        Change("s1", "s2", unit="team"),
        Change("s2", "s3", "b", 1),
        Change("s3", "s4", unit="team"),
    )


def test_files_that_are_applied_after_a_turn_count_once() -> None:
    events = [step("s0"), began("a", 1), ended("a", 1), e.FilesApplied("a", 1, 1, 0, ["x"])]
    assert states_of(events, lambda *_: ("s0", "s1"), {}).changes == (Change("s0", "s1", "a", 1),)


def test_turn_beside_another_takes_nothing_back() -> None:
    """It started from an earlier state than the one that the other left."""
    trees = {("a", 1): ("s0", "s1"), ("b", 1): ("s0", "s2")}
    events = [step("s0"), began("a", 1), began("b", 1), ended("a", 1), ended("b", 1)]
    states = states_of(events, lambda role, turn: trees.get((role, turn)), {})
    assert states.changes == (Change("s0", "s1", "a", 1), Change("s1", "s2", "b", 1))


def test_turns_in_a_copy_count_when_it_is_merged() -> None:
    trees = {("a", 1): ("s0", "c1"), ("a", 2): ("c1", "c2")}
    turns = [began("a", 1, "w.1"), ended("a", 1), began("a", 2, "w.1"), ended("a", 2)]
    events = [step("s0"), *turns, e.CopyMerged("w.1", "merged", ["x"], [])]
    states = states_of(events, lambda role, turn: trees.get((role, turn)), {"w.1": CopyStates("s0", "s0", "s1")})
    assert states.changes == (Change("s0", "s1", copy="w.1"),)
    assert states.in_copies == {"w.1": (Change("s0", "c1", "a", 1, "w.1"), Change("c1", "c2", "a", 2, "w.1"))}


def test_turn_of_a_flow_called_in_a_copy_changes_that_copy_alone() -> None:
    """Of a copy that was discarded, no later state of the workspace has what such a turn wrote."""
    events = [step("s0"), began("a", 1, "race.1.0/w.1"), ended("a", 1), last("s0")]
    states = states_of(events, lambda *_: ("s0", "c1"), {"race.1.0": CopyStates("s0")})
    assert (states.changes, states.last) == ((), "s0")
    assert states.in_copies == {"race.1.0": (Change("s0", "c1", "a", 1, "race.1.0/w.1"),)}


def test_copy_shows_the_state_that_it_was_made_of() -> None:
    """Somebody changed something just before."""
    events = [step("s0"), began("a", 1, "w.1"), ended("a", 1), e.CopyMerged("w.1", "merged", [], [])]
    states = states_of(events, lambda *_: ("s1", "c1"), {"w.1": CopyStates("s1", "s1", "s2")})
    assert states.changes == (Change("s0", "s1", unit="team"), Change("s1", "s2", copy="w.1"))


def test_copies_that_a_check_merged_are_found_by_their_states() -> None:
    """No event names them; somebody changed something between the two merges."""
    copies = {"w.0": CopyStates("s0", "s2", "s3"), "w.1": CopyStates("s0", "s0", "s1")}
    states = states_of([step("s0"), step("s3")], lambda *_: None, copies)
    assert states.changes == (Change("s0", "s2", unit="team"), Change("s2", "s3", copy="w.0"))
    copies["w.0"] = CopyStates("s0", "s1", "s3")
    states = states_of([step("s0"), step("s3")], lambda *_: None, copies)
    assert states.changes == (Change("s0", "s1", copy="w.1"), Change("s1", "s3", copy="w.0"))


def test_run_that_could_change_nothing_has_no_states() -> None:
    states = states_of([step(""), began("a", 1), ended("a", 1), last("")], lambda *_: None, {})
    assert (states.first, states.last, states.changes) == ("", "", ())
