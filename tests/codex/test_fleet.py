"""The processes of a run together: who starts, who makes room."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from codex_multi_role.codex.fleet import Fleet, Member
from codex_multi_role.codex.home import sole_start
from codex_multi_role.errors import CodexStartFailed, CodexTimeout
from codex_multi_role.host.processes import Family
from tests.support.codex import ROLE, Harness, codex_after
from tests.support.teams import read_lines

pytestmark = pytest.mark.real

ANSWER = {"text": "Hello."}
LONG_ENOUGH_SECONDS = 0.5
DEADLINE_SECONDS = 30


def begin(fleet: Fleet, role: str, begun: list[int]) -> threading.Thread:
    """Somebody who wants a turn of ``role``."""

    def borrow() -> None:
        with fleet.borrowed(role) as client:
            begun.append(client.pid)

    thread = threading.Thread(target=borrow, daemon=True)
    thread.start()
    return thread


def test_member_displaced_before_its_start_blocks_no_turn(harness: Harness) -> None:
    """A member that must make room before its process has started waits for nobody."""
    gate = harness.folder / "gate"
    codex = codex_after(harness.folder, f"while [ ! -e {gate} ]; do sleep 0.05; done")
    pattern = harness.member([ANSWER], codex=codex)

    def member(role: str) -> Member:
        return replace(pattern, role=role, launch=replace(pattern.launch, family=Family()))

    members = {role: member(role) for role in ("one", "two")}
    fleet = harness.fleet_of(members, describe=member, first_alone=True, most=2)
    begun: list[int] = []
    turns = [begin(fleet, role, begun) for role in ("three", "four")]
    turns[-1].join(LONG_ENOUGH_SECONDS)  # for both to displace who is still to start
    gate.touch()
    for turn in turns:
        turn.join(DEADLINE_SECONDS)
    assert len(set(begun)) == 2


def test_runs_that_begin_together_on_a_fresh_home_all_start(harness: Harness) -> None:
    """Each is the first of its run; without a lock most of them fail to create the databases of the home."""
    home = harness.folder / "shared"
    pattern = harness.member([ANSWER], home=home)
    fleets = [
        harness.fleet_of({ROLE: replace(pattern, launch=replace(pattern.launch, family=Family()))}, first_alone=True)
        for _ in range(6)
    ]
    pids = {fleet.client(ROLE).pid for fleet in fleets}
    assert len(pids) == len(fleets)


def test_waiting_for_the_home_ends_with_the_run(harness: Harness) -> None:
    pattern = harness.member([ANSWER])
    with sole_start(harness.folder / "home"):
        fleet = harness.fleet_of({ROLE: pattern}, first_alone=True)
        fleet.stop()
    with pytest.raises(CodexTimeout, match="the run is stopping"):
        fleet.client(ROLE)


def test_member_with_the_first_turn_starts_ahead_of_the_others(harness: Harness) -> None:
    """The others start after its first answer."""
    pattern = harness.member([ANSWER])
    members = {role: replace(pattern, role=role, wire_log=harness.folder / role) for role in ("one", "two", "three")}
    fleet = harness.fleet_of(members, first_alone=False, ahead="two")
    for role in members:
        fleet.client(role)
    begun = {role: [line["at"] for line in read_lines(harness.folder / role)] for role in members}
    assert begun["two"][1] <= min(begun["one"][0], begun["three"][0])


def test_others_start_when_the_member_ahead_of_them_fails(harness: Harness) -> None:
    pattern = harness.member([ANSWER])
    missing = replace(pattern, role="two", launch=replace(pattern.launch, argv=["/nowhere/codex"]))
    fleet = harness.fleet_of({"one": replace(pattern, role="one"), "two": missing}, first_alone=False, ahead="two")
    with pytest.raises(CodexStartFailed):
        fleet.client("two")
    assert fleet.client("one").pid
