"""A limit ends a turn at the model request that exceeds it, and the run can be resumed with a larger one."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role import run
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
