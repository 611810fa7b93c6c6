"""Limits are reserved before a turn begins, and count once however often a run is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.teams import Record, TeamFolder, read, say

USAGE: Record = {"usage": {"input_tokens": 90, "output_tokens": 10}}


def team(folder: Path) -> TeamFolder:
    plays = {name: [{**say(f"{name} {cycle}"), **USAGE} for cycle in (1, 2, 3)] for name in ("one", "two")}
    return TeamFolder(folder, {"one": {}, "two": {}}, plays)


@pytest.mark.parametrize(
    ("limit", "turns", "words"),
    [
        ({"max_turns": 3}, 3, "3 of 3 turns are used: one 2, two 1"),
        ({"max_tokens": 150}, 2, "200 of 150 tokens are used: one 100, two 100"),
    ],
)
def test_a_used_up_limit_parks_the_run_and_says_where_it_went(
    tmp_path: Path, limit: Record, turns: int, words: str
) -> None:
    parked = team(tmp_path)
    report = parked.run(cycles=2, **limit)
    assert (report.status, report.outcome, report.exit_code) == ("parked", "budget_used_up", 5)
    assert report.reason == words
    assert len(parked.turns()) == turns
    assert read(report.folder / "run.json")["status"] == "parked"


def test_what_was_used_counts_once_across_sessions(tmp_path: Path) -> None:
    parked = team(tmp_path)
    assert parked.run(cycles=2, max_turns=1).exit_code == 5
    assert parked.resume().exit_code == 5
    assert parked.turns() == []
    assert parked.resume(max_turns=3).exit_code == 5
    assert [turn[0] for turn in parked.turns()] == ["two", "one"]
    assert parked.resume(max_turns=4).outcome == "cycles_used_up"
    assert [turn[0] for turn in parked.turns()] == ["two"]


def test_repair_turns_are_reserved_too(tmp_path: Path) -> None:
    asked = TeamFolder(tmp_path, {"one": {}}, {"one": [{"text": "no", "repairs": [say()]}]})
    assert asked.run(max_turns=1).exit_code == 5
    assert asked.resume(max_turns=2).outcome == "cycles_used_up"


def test_seconds_are_those_the_run_was_worked_on(tmp_path: Path) -> None:
    slow = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [{**say(), "delay_seconds": 1}], "two": [say()]})
    report = slow.run(max_seconds=1)
    assert (report.outcome, [turn[0] for turn in slow.turns()]) == ("budget_used_up", ["one"])
