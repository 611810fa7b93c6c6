"""Limits are reserved before a turn begins, and count once however often a run is resumed."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

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
def test_used_up_limit_parks_the_run_and_says_where_it_went(
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


def test_negative_token_counts_give_no_refund_and_warn_once(tmp_path: Path) -> None:
    counts = [100, -1_000_000, 60, -5, 1]
    plays = [{**say(), "usage": {"input_tokens": count, "output_tokens": 0}} for count in counts]
    parked = TeamFolder(tmp_path, {"one": {}}, {"one": plays})
    report = parked.run(cycles=5, max_tokens=150)
    assert (report.exit_code, len(parked.turns())) == (5, 2)
    assert report.reason.endswith("the provider of role one reported none or invalid ones")
    [warning] = parked.of_type("warning")
    report = parked.resume()
    assert (report.exit_code, report.reason) == (5, "160 of 150 tokens are used: one 160")
    assert len(parked.turns()) == 1
    assert warning["message"].startswith("one: its provider reported invalid token counts (decreasing, negative")


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_compaction_whose_tokens_nobody_says_is_not_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the provider had done it itself, in a conversation that was resumed and whose file is gone."""
    monkeypatch.setattr("codex_multi_role.codex.usage_counter.UsageCounter.end_compaction", lambda *_: False)
    monkeypatch.setattr("codex_multi_role.codex.running_turn.compaction_usage", lambda _: None)
    full = {**say(), "usage": {"input_tokens": 200, "output_tokens": 1}}
    compacted = TeamFolder(tmp_path, {"one": {}}, {"one": [full, say()]})
    compacted.run(cycles=2, config=("model_auto_compact_token_limit=100",))
    said = "one: Codex compacted its conversation and did not report the tokens"
    assert any(warning["message"].startswith(said) for warning in compacted.of_type("warning"))


def test_repair_turns_are_reserved_too(tmp_path: Path) -> None:
    asked = TeamFolder(tmp_path, {"one": {}}, {"one": [{"text": "no", "repairs": [say()]}]})
    assert asked.run(max_turns=1).exit_code == 5
    assert asked.resume(max_turns=2).outcome == "cycles_used_up"


def test_seconds_are_those_the_run_was_worked_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = TeamFolder(tmp_path, {"one": {}, "two": {}}, {"one": [say()], "two": [say()]})
    turn_takes_two_seconds = partial(WorkClock, now=lambda: 2.0 * len(slow.turns()))
    monkeypatch.setattr("codex_multi_role.lifecycle.session.WorkClock", turn_takes_two_seconds)
    report = slow.run(max_seconds=1)
    assert (report.outcome, [turn[0] for turn in slow.turns()]) == ("budget_used_up", ["one"])
    assert re.fullmatch(r"2 of 1 seconds are used: one \d+", report.reason)


def test_seconds_of_a_killed_session_count_up_to_its_latest_turn(tmp_path: Path) -> None:
    slow = team(tmp_path)
    report = slow.run(max_turns=2, cycles=2)
    assert report.exit_code == 5
    # As a kill leaves it after an hour's work: the totals are those of the session before.
    record, turn = report.folder / "run.json", report.folder / "two/turn_001/turn.json"
    record.write_text(json.dumps({**read(record), "status": "running", "totals": {}}))
    turn.write_text(json.dumps({**read(turn), "worked_seconds": 3600.0}))
    again = slow.resume(max_seconds=3000, max_turns=None)
    assert (again.outcome, slow.turns()) == ("budget_used_up", [])
    assert re.match(r"3,6\d\d of 3,000 seconds are used: ", again.reason)


def test_time_that_a_person_takes_is_not_the_runs(tmp_path: Path) -> None:
    reviewed = team(tmp_path)
    step = {"id": "ok", "review": "Well?", "next": [{"when": "steps.ok.visits < 3", "to": "ok"}]}
    with_flow(reviewed, {"steps": [{"ask": "one"}, step]})
    thought = []

    def ask(_question: Question, _is_over: Callable[[], bool]) -> Answer | None:
        began = time.monotonic()
        threading.Event().wait(0.2)
        thought.append(time.monotonic() - began)
        return Answer(True)

    began = time.monotonic()
    report = run(reviewed.options(flow="own"), ask_person=ask)
    assert report.outcome == "success"
    assert len(thought) == 3
    assert report.totals["seconds"] <= time.monotonic() - began - sum(thought) + 0.001
