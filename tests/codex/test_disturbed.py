"""One message between us and the real binary that is lost, late, or there twice (see tests/endurance)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.running_turn import TurnDeadlines
from tests.support.codex import ANSWER, ROLE, Harness, disturbed, take, wire
from tests.support.message_fates import Once, Several
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.real

SHORT = TurnDeadlines(idle=0.8, turn=30)
RUNS: Record = {"call": "exec_command", "arguments": {"cmd": "echo ran >> out.txt"}}
USAGE = {"input_tokens": 100, "output_tokens": 7}
REPORT, TOTAL = "rawResponse/completed", "thread/tokenUsage/updated"
APPROVAL = "item/commandExecution/requestApproval"


def test_lost_approval_is_a_stall_and_next_turn_succeeds(harness: Harness) -> None:
    """The next turn uses the same thread."""
    client = harness.client(
        [{"steps": [RUNS, ANSWER]}, {"json": {"summary": "next"}}],
        codex=disturbed(harness.folder, Once("out", f"answer to {APPROVAL}", "drop")),
        sandbox="workspace-write",
        approvals=ApprovalPolicy(commands=True),
    )
    outcome = take(client, 1, SHORT)
    assert (outcome.status, outcome.remedy) == ("stalled", Remedy.RETRY)
    assert json.loads(take(client, 2).text) == {"summary": "next"}
    assert not (harness.workspace / "out.txt").exists()


def test_unreported_tokens_are_counted_with_the_next_turn(harness: Harness) -> None:
    entry = {**ANSWER, "usage": USAGE}
    lost = Several((Once("in", REPORT, "drop"), Once("in", TOTAL, "drop")))
    client = harness.client([entry, entry], codex=disturbed(harness.folder, lost))
    assert [take(client, visit).usage.input for visit in (1, 2)] == [0, 200]


def test_what_codex_asks_that_we_do_not_know_is_refused(harness: Harness) -> None:
    client = harness.client([ANSWER], codex=disturbed(harness.folder, Once("in", "turn/started", "request")))
    assert take(client).status == "completed"
    refusals = [message for message in wire(harness, "out") if "error" in message]
    assert [(each["id"], each["error"]["code"]) for each in refusals] == [("invented-1", -32601)]


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("turn/started", "close"),
        ("item/completed agentMessage", "die"),
    ],
)
def test_aborted_turn_is_a_crash_and_next_process_retries_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, name: str, deed: str
) -> None:
    """The process closes its pipe or dies in the middle of a turn."""
    monkeypatch.setattr("codex_multi_role.codex.child.LAST_WORDS_SECONDS", 0.2)
    fleet = harness.fleet([ANSWER], codex=disturbed(harness.folder, Once("in", name, deed)))
    outcome = take(fleet.client(ROLE))
    assert (outcome.status, outcome.remedy) == ("crashed", Remedy.RETRY)
    assert take(fleet.client(ROLE)).status == "completed"


@pytest.mark.parametrize(
    ("once", "first"),
    [
        (Once("in", "item/completed agentMessage", "drop"), "invalid_reply"),
        (Once("in", "answer to turn/start", "drop"), "stalled"),
    ],
)
def test_turn_with_lost_answer_is_not_a_success_and_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Once, first: str
) -> None:
    monkeypatch.setattr("codex_multi_role.codex.running_turn.INTERRUPT_SECONDS", 0.5)
    monkeypatch.setattr("codex_multi_role.steps.recovery.FIRST_PAUSE_SECONDS", 0.01)
    limits = {"idle_seconds": SHORT.idle, "turn_seconds": SHORT.turn}
    team = TeamFolder(tmp_path, {"one": {"limits": limits, "behaviors": {"can_finish": True}}}, {})
    team.write_plays(one=[{**say("answered", status="DONE"), "repairs": [say("answered", status="DONE")]}])
    report = team.run(codex_bin=disturbed(tmp_path, once))
    assert report.exit_code == 0, report
    assert [turn[1:] for turn in team.turns()] == [(1, first), (2, "completed")]
