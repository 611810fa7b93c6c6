"""Rules of the protocol that cost a hang where they are broken (measured), held on the wire of the real binary."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.running_turn import TurnDeadlines
from tests.support.codex import ANSWER, PATIENT, ROLE, Harness, disturbed, request, take, wire
from tests.support.message_fates import Once
from tests.support.teams import ECHO, Record, TeamFolder, fan, say, solver

pytestmark = pytest.mark.real

SHORT = TurnDeadlines(idle=0.7, turn=30)
SILENT: Record = {"fault": {"stall_seconds": 600}}


def interrupts(harness: Harness) -> int:
    return [message.get("method") for message in wire(harness, "out")].count("turn/interrupt")


@pytest.mark.long
def test_turn_that_did_not_start_is_not_interrupted(harness: Harness) -> None:
    """Its process is replaced."""
    once = Once("in", "turn/started", "drop")
    fleet = harness.fleet([SILENT, ANSWER], codex=disturbed(harness.folder, once))
    assert take(fleet.client(ROLE), 1, SHORT).status == "stalled"
    assert interrupts(harness) == 0
    assert take(fleet.client(ROLE), 2).status == "completed"
    assert len(harness.restarts) == 1


def test_turn_is_interrupted_once_even_where_its_end_is_lost(harness: Harness) -> None:
    once = Once("in", "turn/completed", "drop")
    fleet = harness.fleet([SILENT, ANSWER], codex=disturbed(harness.folder, once))
    assert take(fleet.client(ROLE), 1, SHORT).status == "stalled"
    assert interrupts(harness) == 1
    assert take(fleet.client(ROLE), 2).status == "completed"
    assert len(harness.restarts) == 1


def test_turn_that_ended_is_not_interrupted(harness: Harness) -> None:
    client = harness.client([ANSWER])
    take(client)
    client.cancel()
    assert take(client, 2).status == "interrupted"
    assert interrupts(harness) == 0


def test_turn_starts_only_after_previous_turn_of_thread_ended(tmp_path: Path) -> None:
    team = solver(tmp_path, [fan(list("abcdef"), concurrency=2)], [ECHO] * 9)
    report = team.run(flow="own")
    assert report.outcome == "success", report
    logs = [path for path in report.folder.glob("*/events.jsonl") if "turn/start" in path.read_text()]
    assert len(logs) == 2
    for log in logs:
        said = [json.loads(line)["message"].get("method") for line in log.read_text().splitlines()]
        turns = [method for method in said if method in ("turn/start", "turn/completed")]
        assert turns == ["turn/start", "turn/completed"] * (len(turns) // 2)


def test_full_inbox_waits_for_room_and_loses_no_deltas(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """More deltas arrive than the inbox can hold."""
    monkeypatch.setattr("codex_multi_role.codex.transport.INBOX_SIZE", 10)
    text = "word " * 5_000
    client = harness.client([{"text": text, "deltas": 5_000}])
    outcome = client.run_turn(request(), PATIENT, lambda _: None)
    assert (outcome.status, outcome.text, outcome.delta_text) == ("completed", text, text)


def test_each_process_is_out_of_reach_of_the_terminals_signals(harness: Harness) -> None:
    pid = harness.client([ANSWER]).pid
    assert os.getsid(pid) == pid != os.getsid(0)


@pytest.mark.long
def test_unsaved_conversation_is_reported_and_run_continues(tmp_path: Path) -> None:
    """Codex cannot write more than 2.5 MB per file, as on a full disk. A resume starts a new thread."""
    codex = tmp_path / "codex"
    codex.write_text(f'#!/bin/sh\ntrap "" XFSZ\nulimit -f 5000\nexec {find_codex(None, {})} "$@"\n')
    codex.chmod(0o755)
    team = TeamFolder(tmp_path, {"one": {"prompt_text": "x" * 600_000}}, {"one": [say(word) for word in "abcd"]})
    assert team.run(codex_bin=codex, cycles=3).outcome == "cycles_used_up"
    assert [turn[2] for turn in team.turns()] == ["completed"] * 3
    assert any("Failed to save the conversation transcript" in event["message"] for event in team.of_type("warning"))
    report = team.resume(cycles=4)
    assert report.outcome == "cycles_used_up"
    (again,) = team.of_type("role_started")
    assert not again["resumed"]
    assert '"summary": "c"' in (report.folder / "one/turn_004/prompt.txt").read_text()


def test_unknown_tool_is_refused_and_turn_continues(harness: Harness) -> None:
    call: Record = {"call": "no_such_tool", "arguments": {"a": 1}}
    outcome = take(harness.client([{"steps": [call, {"text": "{{ tool_outputs[0] }}"}]}]))
    assert outcome.status == "completed"
    assert "unsupported call: no_such_tool" in outcome.text


def test_stderr_is_kept_apart(harness: Harness, tmp_path: Path) -> None:
    noisy = tmp_path / "codex"
    line = '{"method": "turn/completed", "params": {}}'
    noisy.write_text(f"#!/bin/sh\necho '{line}' >&2\nexec {find_codex(None, {})} \"$@\"\n")
    noisy.chmod(0o755)
    assert take(harness.client([ANSWER], codex=noisy)).status == "completed"
    assert line in harness.stderr.read_text()
    assert {} not in [message.get("params") for message in wire(harness, "in") if "turn" in message.get("method", "")]
