"""One message between us and the real binary that is lost, late, or there twice (see tests/endurance)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.running_turn import TurnDeadlines
from tests.support.codex import ANSWER, ROLE, Harness, disturbed, take, wire
from tests.support.message_fates import Direction, Once, Several
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.real

SHORT = TurnDeadlines(idle=0.8, turn=30)
RUNS: Record = {"call": "exec_command", "arguments": {"cmd": "echo ran >> out.txt"}}
USAGE = {"input_tokens": 100, "output_tokens": 7}
REPORT, TOTAL = "rawResponse/completed", "thread/tokenUsage/updated"
APPROVAL = "item/commandExecution/requestApproval"


def done_by(folder: Path) -> list[str]:
    """What the proxy did to messages."""
    lines = [line for path in (folder / "proxy").iterdir() for line in path.read_text().splitlines()]
    return [deed for line in lines for deed in json.loads(line)["deeds"]]


def commanding(harness: Harness, deeds: Once | Several, plays: list[Record]) -> RoleClient:
    return harness.client(
        plays,
        codex=disturbed(harness.folder, deeds),
        sandbox="workspace-write",
        approvals=ApprovalPolicy(commands=True),
    )


DISTURBANCES: tuple[tuple[Direction, str, str], ...] = (
    ("in", "turn/completed", "double"),
    ("in", "turn/started", "foreign"),
    ("in", "turn/started", "drop"),
    ("in", "turn/started", "double"),
    ("in", "item/completed agentMessage", "double"),
    ("in", "answer to turn/start", "late"),
    ("in", "answer to turn/start", "double"),
    ("in", "turn/completed", "late"),
    ("in", "turn/started", "garbage"),
    ("in", "turn/started", "unknown"),
    ("in", "turn/started", "stranger"),
    ("in", "turn/completed", "split"),
    ("in", "answer to turn/start", "newer"),
    ("in", "turn/completed", "newer"),
    ("in", "item/completed agentMessage", "newer"),
    ("in", "item/completed commandExecution", "newer"),
    ("in", APPROVAL, "double"),
    ("out", f"answer to {APPROVAL}", "double"),
)


@pytest.mark.long
def test_each_turn_has_its_own_answer_all_the_same(harness: Harness) -> None:
    """Each is disturbed in another way, and so is the start of the thread."""
    late = Once("in", "answer to thread/start", "late")
    commanded = [turn for turn, (_, name, _) in enumerate(DISTURBANCES, start=1) if "commandExecution" in name]
    deeds = [Once(*each, nth=_times(turn, commanded)) for turn, each in enumerate(DISTURBANCES, start=1)]
    answers: list[Record] = [{"json": {"summary": str(turn)}} for turn in range(1, len(deeds) + 2)]
    plays = [{"steps": [*([RUNS] if turn in commanded else []), each]} for turn, each in enumerate(answers, start=1)]
    client = commanding(harness, Several((late, *deeds)), plays)
    for turn, answer in enumerate(answers, start=1):
        outcome = take(client, turn)
        assert (outcome.status, json.loads(outcome.text)) == ("completed", answer["json"]), deeds[turn - 2 : turn]
    assert (harness.workspace / "out.txt").read_text() == "ran\n" * len(commanded)
    assert not client.broken
    assert sorted(done_by(harness.folder)) == sorted(each.deed for each in (late, *deeds))


def _times(turn: int, commanded: list[int]) -> int:
    """How often there has been a message of its kind by the end of that turn."""
    return commanded.index(turn) + 1 if turn in commanded else turn


@pytest.mark.parametrize(
    "once",
    [pytest.param(Once("in", APPROVAL, "drop"), marks=pytest.mark.long), Once("out", f"answer to {APPROVAL}", "drop")],
)
def test_lost_approval_is_a_stall_and_next_turn_succeeds(harness: Harness, once: Once) -> None:
    """The next turn uses the same thread."""
    client = commanding(harness, once, [{"steps": [RUNS, ANSWER]}, {"json": {"summary": "next"}}])
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
    assert "swallow" in done_by(harness.folder)
    refusals = [message for message in wire(harness, "out") if "error" in message]
    assert [(each["id"], each["error"]["code"]) for each in refusals] == [("invented-1", -32601)]


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("turn/started", "close"),
        ("item/completed agentMessage", "die"),
        pytest.param("item/completed agentMessage", "close", marks=pytest.mark.long),
        pytest.param("turn/completed", "close", marks=pytest.mark.long),
        pytest.param("turn/started", "die", marks=pytest.mark.long),
        pytest.param("turn/completed", "die", marks=pytest.mark.long),
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
        pytest.param(Once("in", "turn/completed", "drop"), "stalled", marks=pytest.mark.long),
        (Once("in", "answer to turn/start", "drop"), "stalled"),
        pytest.param(Once("out", "turn/start", "drop"), "stalled", marks=pytest.mark.long),
        pytest.param(Once("in", "turn/started", "die"), "crashed", marks=pytest.mark.long),
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
