"""Limits are reserved before a turn begins, count once however often a run is resumed, and end a turn at the request
that exceeds one; the run can be resumed with a larger one."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.run_folder import Answer, Question
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.processes import wait_until
from tests.support.teams import LIMITS, Record, TeamFolder, fan, read, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

USAGE: Record = {"input_tokens": 90, "output_tokens": 10}
CALL: Record = {"call": "ask_user", "arguments": {"question": "Well?"}}
ANSWER: Record = {**say(), "usage": USAGE}
ASKS: Record = {"tools": ["ask_user"]}


def working(calls: int, *, slow: int | None = None, seconds: float = 2.0) -> Record:
    """A play of one turn with so many tool calls, 100 tokens per request; the request number ``slow`` takes longer."""
    steps: list[Record] = [{**CALL, "usage": USAGE} for _ in range(calls)] + [{**ANSWER}]
    if slow is not None:
        steps[slow - 1]["delay_seconds"] = seconds
    return {"steps": steps}


def team(folder: Path, play: Record, **keys: object) -> TeamFolder:
    return TeamFolder(folder, {"one": {**ASKS, **keys}}, {"one": [play]})


def tokens(folder: Path) -> list[int]:
    """Those of every turn of role one."""
    turns = [read(path)["tokens"] for path in sorted(folder.glob("one/turn_*/turn.json"))]
    return [turn["input"] + turn["output"] for turn in turns]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_turn_ends_at_the_request_that_exceeds_the_limit(tmp_path: Path) -> None:
    """The interrupted turn is asked again with a larger limit, and what it used stays counted."""
    parked = team(tmp_path, working(4, slow=4))
    report = parked.run(max_tokens=250)
    assert (report.exit_code, report.outcome) == (5, "budget_used_up")
    assert report.reason == "300 of 250 tokens are used: one 300"
    assert parked.turns() == [("one", 1, "interrupted")]
    turn = read(report.folder / "one/turn_001/turn.json")
    assert (turn["outcome"], turn["reason"]) == ("budget_used_up", report.reason)
    again = parked.resume(max_tokens=1_000)
    assert (again.outcome, tokens(report.folder)) == ("cycles_used_up", [300, 500])
    assert again.totals["input_tokens"] + again.totals["output_tokens"] == 800


def test_turn_that_is_answered_when_it_exceeds_is_kept(tmp_path: Path) -> None:
    kept = team(tmp_path, working(2))
    report = kept.run(max_tokens=250)
    assert (report.outcome, kept.turns()) == ("cycles_used_up", [("one", 1, "completed")])
    counted = kept.of_type("usage_counted")
    assert [each["input_tokens"] + each["output_tokens"] for each in counted] == [100, 200]


def test_other_running_turns_end_with_it(tmp_path: Path) -> None:
    """One item exceeds the limit while the other one waits for its model."""
    waits: Record = {**ANSWER, "delay_seconds": 60}
    calls: list[Record] = [{**CALL, "usage": dict.fromkeys(USAGE, 0)}, {**CALL, "usage": USAGE}]
    steps: list[Record] = [{"choose": [{"when": "'ITEM a' in prompt", **each}, waits]} for each in calls]
    both = TeamFolder(tmp_path, {"solver": ASKS}, {"solver": [{"steps": [*steps, waits]}] * 2})
    with_flow(both, {"steps": [fan(["a", "b"], concurrency=2)]})

    def answer(*_: object) -> None:
        wait_until(lambda: len(both.of_type("turn_started")) == 2, "the other turn")

    report = run(both.options(flow="own", max_tokens=50), both.events.append, answer)
    assert (report.exit_code, report.reason) == (5, "100 of 50 tokens are used: solver 100")
    assert sorted(status for _, _, status in both.turns()) == ["interrupted", "interrupted"]


def test_role_has_a_limit_of_its_own(tmp_path: Path) -> None:
    """It is raised in the role's file, with which the run is resumed."""
    limited = team(tmp_path, ANSWER, limits={**LIMITS, "max_tokens": 50})
    limited.plays["one"] *= 2
    limited.write_plays()
    report = limited.run(cycles=2)
    assert (report.exit_code, report.reason) == (5, "100 of 50 tokens are used, the limit of role one")
    assert "limits.max_tokens of role one in your catalog.yaml" in report.hint
    limited.roles["one"]["limits"] = {**LIMITS, "max_tokens": 1_000}
    limited.write_catalog()
    assert limited.resume(roles=limited.folder / "roles").outcome == "cycles_used_up"


def test_role_is_not_asked_beyond_its_turns(tmp_path: Path) -> None:
    limited = TeamFolder(tmp_path, {"one": {"limits": {**LIMITS, "max_turns": 1}}}, {"one": [say()] * 2})
    report = limited.run(cycles=2)
    assert (report.exit_code, report.reason) == (5, "1 of 1 turns are used, the limit of role one")
    assert len(limited.turns()) == 1


def test_running_turn_ends_when_the_seconds_are_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the time of the turn counts here, not that of the start."""
    slow = team(tmp_path, {**ANSWER, "delay_seconds": 60})
    starts: list[float] = []

    def now() -> float:
        if any(slow.runs.glob("*/one/turn_001/prompt.txt")):
            starts.append(time.monotonic())
        return starts[-1] - starts[0] if starts else 0.0

    monkeypatch.setattr("codex_multi_role.lifecycle.session.WorkClock", partial(WorkClock, now=now))
    report = slow.run(max_seconds=0.5)
    assert (report.exit_code, report.outcome) == (5, "budget_used_up")
    assert slow.turns() == [("one", 1, "interrupted")]


@pytest.mark.long
def test_requests_of_a_killed_turn_count(tmp_path: Path) -> None:
    """No short test kills a run between two requests of a turn."""
    killed = team(tmp_path, working(2, slow=3, seconds=5))
    process = killed.start()
    end = time.monotonic() + 60
    while time.monotonic() < end and [200] not in [tokens(run) for run in killed.runs.glob("2*")]:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    again = killed.resume()
    assert again.totals["input_tokens"] + again.totals["output_tokens"] == 200 + 300, json.dumps(again.totals)


def team_of_two(folder: Path) -> TeamFolder:
    plays = {name: [{**say(f"{name} {cycle}"), "usage": USAGE} for cycle in (1, 2, 3)] for name in ("one", "two")}
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
    parked = team_of_two(tmp_path)
    report = parked.run(cycles=2, **limit)
    assert (report.status, report.outcome, report.exit_code) == ("parked", "budget_used_up", 5)
    assert report.reason == words
    assert len(parked.turns()) == turns
    assert read(report.folder / "run.json")["status"] == "parked"


def test_what_was_used_counts_once_across_sessions(tmp_path: Path) -> None:
    parked = team_of_two(tmp_path)
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
    monkeypatch.setattr("codex_multi_role.codex.usage.UsageCounter.end_compaction", lambda *_: False)
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
    slow = team_of_two(tmp_path)
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
    reviewed = team_of_two(tmp_path)
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
