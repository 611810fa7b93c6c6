"""What the real Codex makes of a playbook. One process plays all of it; every test has a thread of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.playbook import AnswerKey, Playbook, PlaybookServer
from tests.support.app_server import AppServer

pytestmark = pytest.mark.real

FULL = {"input_tokens": 1_000_000, "output_tokens": 5}
PATCH = "*** Begin Patch\n*** Add File: note.txt\n+hello\n*** End Patch\n"
ANSWERS: dict[str, dict[str, Any]] = {
    "templated": {"json": {"prompt": "{{ prompt }}", "visit": "{{ visit }}"}},
    "streamed": {"text": "one two three four", "deltas": 3},
    "counted": {"text": "a", "usage": {"input_tokens": 70, "output_tokens": 30}},
    "command": {"steps": [{"call": "exec_command", "arguments": {"cmd": "ls"}}, {"text": "{{ tool_outputs[0] }}"}]},
    "patching": {"steps": [{"patch": PATCH}, {"text": "patched"}]},
    "dynamic": {"steps": [{"call": "add", "arguments": {"a": 1}}, {"text": "{{ tool_outputs[0] }}"}]},
    "mended": {"attempts": [{"fault": {"status": 500}}, {"text": "bad"}], "repairs": [{"text": "good"}]},
    "unfinished": {"call": "exec_command", "arguments": {"cmd": "true"}},
    "crowded": {
        "steps": [
            {"call": "exec_command", "arguments": {"cmd": "echo one"}, "usage": FULL},
            {"call": "exec_command", "arguments": {"cmd": "echo two"}, "usage": FULL},
            {"json": {"prompt": "{{ prompt }}", "outputs": "{{ tool_outputs | length }}"}},
        ]
    },
}
CUT = "stream disconnected before completion"
FAULTS: list[tuple[str, dict[str, Any], object, str]] = [
    ("server error", {"status": 500}, "internalServerError", "high demand"),
    ("overloaded", {"status": 503, "code": "server_is_overloaded"}, "serverOverloaded", "at capacity"),
    (
        "rate limited",
        {"status": 429, "code": "rate_limit_exceeded", "headers": {"Retry-After": "1"}},
        {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
        "429 Too Many Requests",
    ),
    ("usage limit", {"status": 429, "code": "usage_limit_reached"}, "usageLimitExceeded", "hit your usage limit"),
    ("quota", {"status": 429, "code": "insufficient_quota"}, "usageLimitExceeded", "Quota exceeded"),
    ("quota in stream", {"code": "insufficient_quota"}, "usageLimitExceeded", "Quota exceeded"),
    ("unauthorized", {"status": 401}, {"httpConnectionFailed": {"httpStatusCode": 401}}, "401 Unauthorized"),
    ("context full", {"code": "context_length_exceeded"}, "contextWindowExceeded", "ran out of room"),
    ("overloaded in stream", {"code": "server_is_overloaded"}, "serverOverloaded", "at capacity"),
    ("dropped", {"drop": True}, "other", CUT),
    ("dropped at once", {"drop": True, "after_events": 0}, "other", CUT),
    ("stalled", {"stall_seconds": 600}, "other", "idle timeout waiting for SSE"),
    ("web page", {"garbage": "<html>please log in</html>"}, "other", CUT),
    ("broken JSON", {"garbage": 'data: {"type"\n\n'}, "other", CUT),
]


@pytest.fixture(scope="module")
def playbook() -> Playbook:
    roles = {role: [entry] for role, entry in ANSWERS.items()}
    roles |= {name: [{"fault": fault}] for name, fault, _, _ in FAULTS}
    roles["silent"] = [{"fault": {"empty": True}}]
    roles["stuck"] = [{"fault": {"stall_seconds": 600, "after_events": 0}}]
    return Playbook.model_validate({"name": "demo", "roles": roles, "default": {"text": "played again"}})


@pytest.fixture(scope="module")
def server(playbook: Playbook) -> Iterator[PlaybookServer]:
    with PlaybookServer(playbook) as running:
        yield running


@pytest.fixture(scope="module")
def codex(server: PlaybookServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    with AppServer(server.base_url, tmp_path_factory.mktemp("codex_home")) as running:
        yield running


def ask(role: str, *, visit: int = 1, repair: int = 0, attempt: int = 1) -> AnswerKey:
    return AnswerKey(role, visit, repair, attempt)


def test_answer_templated_on_the_prompt(codex: AppServer, tmp_path: Path) -> None:
    turn = codex.turn(codex.thread(tmp_path), "Role: x\nwhat is {{ 6 }} · 7?", ask("templated"))
    assert turn.status == "completed"
    assert json.loads(turn.text or "") == {"prompt": "Role: x\nwhat is {{ 6 }} · 7?", "visit": 1}


def test_deltas_are_streamed(codex: AppServer, tmp_path: Path) -> None:
    turn = codex.turn(codex.thread(tmp_path), "go", ask("streamed"))
    assert (len(turn.deltas), "".join(turn.deltas), turn.text) == (3, "one two three four", "one two three four")


def test_usage_is_what_the_script_says(codex: AppServer, tmp_path: Path) -> None:
    tokens = codex.turn(codex.thread(tmp_path), "go", ask("counted")).tokens
    assert (tokens["inputTokens"], tokens["outputTokens"]) == (70, 30)


def test_command_really_runs(codex: AppServer, server: PlaybookServer, tmp_path: Path) -> None:
    (tmp_path / "seen.txt").touch()
    turn = codex.turn(codex.thread(tmp_path), "go", ask("command"))
    assert [item["status"] for item in turn.kind("commandExecution")] == ["completed"]
    assert "seen.txt" in (turn.text or "")
    assert server.requests[ask("command")] == 2


def test_patch_is_a_file_change(codex: AppServer, tmp_path: Path) -> None:
    turn = codex.turn(codex.thread(tmp_path, "workspace-write"), "go", ask("patching"))
    assert [change["kind"]["type"] for item in turn.kind("fileChange") for change in item["changes"]] == ["add"]
    assert (tmp_path / "note.txt").read_text(encoding="utf-8") == "hello\n"
    assert turn.text == "patched"


def test_dynamic_tool_is_called(codex: AppServer, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    tools = [{"name": "add", "description": "adds", "inputSchema": schema}]
    turn = codex.turn(codex.thread(tmp_path, dynamicTools=tools), "go", ask("dynamic"))
    assert turn.text == 'add got {"a": 1}'


def test_attempts_and_repairs_on_one_thread(codex: AppServer, tmp_path: Path) -> None:
    thread = codex.thread(tmp_path)
    turns = [codex.turn(thread, "go", ask("mended", attempt=attempt)) for attempt in (1, 2)]
    assert [(turn.status, turn.text) for turn in turns] == [("failed", None), ("completed", "bad")]
    assert codex.turn(thread, "repair it", ask("mended", repair=1)).text == "good"


@pytest.mark.parametrize("name", [name for name, *_ in FAULTS])
def test_fault_looks_like_the_real_one(codex: AppServer, tmp_path: Path, name: str) -> None:
    _, _, info, message = next(row for row in FAULTS if row[0] == name)
    thread = codex.thread(tmp_path)
    turn = codex.turn(thread, "go", ask(name))
    assert (turn.status, turn.error["codexErrorInfo"]) == ("failed", info)
    assert message in turn.error["message"]
    assert codex.turn(thread, "again", ask("anyone")).text == "played again"


def test_empty_answer_completes_without_a_message(codex: AppServer, tmp_path: Path) -> None:
    turn = codex.turn(codex.thread(tmp_path), "go", ask("silent"))
    assert (turn.status, turn.text) == ("completed", None)


def test_what_the_script_lacks_is_a_failure_not_worth_a_retry(codex: AppServer, tmp_path: Path) -> None:
    refused = {"httpConnectionFailed": {"httpStatusCode": 422}}
    thread = codex.thread(tmp_path)
    for question, lack in [
        (ask("counted", visit=2), "playbook demo has no visit 2 of role counted (it has 1)"),
        (ask("counted", repair=1), "playbook demo has no repair 1 (the visit has 0)"),
        (ask("unfinished"), "playbook demo has no step 2 (the turn has 1)"),
    ]:
        turn = codex.turn(thread, "go", question)
        assert (turn.status, turn.error["codexErrorInfo"]) == ("failed", refused)
        assert lack in turn.error["message"]


def test_compaction_in_the_middle_of_a_turn_loses_no_step(
    codex: AppServer, server: PlaybookServer, tmp_path: Path
) -> None:
    turn = codex.turn(codex.thread(tmp_path), "the prompt", ask("crowded"))
    assert json.loads(turn.text or "") == {"prompt": "the prompt", "outputs": 2}
    assert server.requests[ask("crowded")] == 3


def test_compaction_on_demand(codex: AppServer, tmp_path: Path) -> None:
    thread = codex.thread(tmp_path)
    codex.turn(thread, "go", ask("anyone"))
    codex.request("thread/compact/start", threadId=thread)
    assert codex.finish().status == "completed"
    assert codex.turn(thread, "and on", ask("templated")).status == "completed"


def test_stop_during_a_stall_fails_the_turn_at_once(playbook: Playbook, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with PlaybookServer(playbook) as stopped, AppServer(stopped.base_url, home) as codex:
        codex.begin(codex.thread(tmp_path), "go", ask("stuck"))
        codex.wait_for("turn/started")
        stopped.stop()
        assert codex.finish().status == "failed"
