"""One message between us and the real binary that is lost, late, or there twice (see tests/endurance)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.running_turn import TurnDeadlines
from tests.support.codex import ANSWER, ROLE, Harness, disturbed, take, wire
from tests.support.message_fates import Once
from tests.support.teams import TeamFolder, say

SHORT = TurnDeadlines(idle=1, turn=30)
COMMAND = {"steps": [{"call": "exec_command", "arguments": {"cmd": "echo ran >> out.txt"}}, ANSWER]}
USAGE = {"input_tokens": 100, "output_tokens": 7}


again = partial(pytest.param, marks=pytest.mark.long)
"""A case that takes the way of another one through the code."""


def was_done(folder: Path, deed: str) -> bool:
    lines = [line for path in (folder / "proxy").iterdir() for line in path.read_text().splitlines()]
    return any(deed in json.loads(line)["deeds"] for line in lines)


def commanding(harness: Harness, once: Once) -> RoleClient:
    return harness.client(
        [COMMAND, {"json": {"summary": "next"}}],
        codex=disturbed(harness.folder, once),
        sandbox="workspace-write",
        approvals=ApprovalPolicy(commands=True),
    )


@pytest.mark.parametrize(
    "once",
    [
        Once("in", "turn/completed", "double"),
        Once("in", "turn/started", "foreign"),
        Once("in", "turn/started", "drop"),
        again(Once("in", "turn/started", "double")),
        again(Once("in", "item/completed agentMessage", "double")),
        Once("in", "answer to turn/start", "late"),
        again(Once("in", "answer to turn/start", "double")),
        again(Once("in", "answer to thread/start", "late")),
        again(Once("in", "turn/completed", "late")),
        Once("in", "turn/started", "garbage"),
        Once("in", "turn/started", "unknown"),
        Once("in", "turn/started", "stranger"),
        Once("in", "turn/completed", "split"),
        again(Once("in", "answer to turn/start", "newer")),
        again(Once("in", "turn/completed", "newer")),
        Once("in", "item/completed agentMessage", "newer"),
        again(Once("in", "item/completed commandExecution", "newer")),
        Once("in", "item/commandExecution/requestApproval", "double"),
        Once("out", "answer to item/commandExecution/requestApproval", "double"),
    ],
)
def test_each_turn_has_its_own_answer_all_the_same(harness: Harness, once: Once) -> None:
    client = commanding(harness, once)
    for visit, word in ((1, "fine"), (2, "next")):
        outcome = take(client, visit)
        assert (outcome.status, json.loads(outcome.text)) == ("completed", {"summary": word})
    assert was_done(harness.folder, once.deed)
    assert (harness.workspace / "out.txt").read_text() == "ran\n"
    assert not client.broken


APPROVAL = "item/commandExecution/requestApproval"


@pytest.mark.parametrize("once", [Once("in", APPROVAL, "drop"), again(Once("out", f"answer to {APPROVAL}", "drop"))])
def test_lost_approval_is_a_stall_and_next_turn_succeeds(harness: Harness, once: Once) -> None:
    """The next turn uses the same thread."""
    client = commanding(harness, once)
    outcome = take(client, 1, SHORT)
    assert (outcome.status, outcome.remedy) == ("stalled", Remedy.RETRY)
    assert json.loads(take(client, 2).text) == {"summary": "next"}
    assert not (harness.workspace / "out.txt").exists()


def test_unreported_tokens_are_counted_with_the_next_turn(harness: Harness) -> None:
    entry = {**ANSWER, "usage": USAGE}
    client = harness.client(
        [entry, entry], codex=disturbed(harness.folder, Once("in", "thread/tokenUsage/updated", "drop"))
    )
    assert [take(client, visit).input_tokens for visit in (1, 2)] == [0, 200]


def test_what_codex_asks_that_we_do_not_know_is_refused(harness: Harness) -> None:
    client = harness.client([ANSWER], codex=disturbed(harness.folder, Once("in", "turn/started", "request")))
    assert take(client).status == "completed"
    assert was_done(harness.folder, "swallow")
    refusals = [message for message in wire(harness, "out") if "error" in message]
    assert [(each["id"], each["error"]["code"]) for each in refusals] == [("invented-1", -32601)]


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("turn/started", "close"),
        ("turn/completed", "die"),
        again("turn/started", "die"),
        again("item/completed agentMessage", "close"),
        again("item/completed agentMessage", "die"),
        again("turn/completed", "close"),
    ],
)
def test_aborted_turn_is_a_crash_and_next_process_retries_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, name: str, deed: str
) -> None:
    """The process closes its pipe or dies in the middle of a turn."""
    monkeypatch.setattr("codex_multi_role.codex.child.LAST_WORDS_SECONDS", 0.5)
    fleet = harness.fleet([ANSWER], codex=disturbed(harness.folder, Once("in", name, deed)))
    outcome = take(fleet.client(ROLE))
    assert (outcome.status, outcome.remedy) == ("crashed", Remedy.RETRY)
    assert take(fleet.client(ROLE)).status == "completed"


@pytest.mark.parametrize(
    ("once", "first"),
    [
        (Once("in", "item/completed agentMessage", "drop"), "invalid_reply"),
        (Once("in", "turn/completed", "drop"), "stalled"),
        again(Once("in", "answer to turn/start", "drop"), "stalled"),
        again(Once("out", "turn/start", "drop"), "stalled"),
        (Once("in", "turn/started", "die"), "crashed"),
    ],
)
def test_turn_with_lost_answer_is_not_a_success_and_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Once, first: str
) -> None:
    monkeypatch.setattr("codex_multi_role.codex.running_turn.INTERRUPT_SECONDS", 1.0)
    limits = {"idle_seconds": SHORT.idle, "turn_seconds": SHORT.turn}
    team = TeamFolder(tmp_path, {"one": {"limits": limits, "behaviors": {"can_finish": True}}}, {})
    team.plays["one"] = [{**say("answered", status="DONE"), "repairs": [say("answered", status="DONE")]}]
    team.write_plays()
    report = team.run(codex_bin=disturbed(tmp_path, once))
    assert report.exit_code == 0, report
    assert [turn[1:] for turn in team.turns()] == [(1, first), (2, "completed")]
