"""Rules of the protocol that cost a hang where they are broken, on the wire, and a Codex home nobody can write in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codex_multi_role.codex.running_turn import TurnDeadlines
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.faults.screen import Screen, Seen
from tests.support.codex import ANSWER, PATIENT, ROLE, Harness, codex_after, disturbed, log_in, request, take, wire
from tests.support.message_fates import Once
from tests.support.teams import ECHO, Record, TeamFolder, fan, say, solver
from tests.support.workspaces import Link, write_files

pytestmark = pytest.mark.real

SHORT = TurnDeadlines(idle=0.7, turn=30)
WRITABLE, UNWRITABLE = Link("homes/real"), Link("/proc/sys")
SILENT: Record = {"fault": {"stall_seconds": 600}}


def interrupts(harness: Harness) -> int:
    return [message.get("method") for message in wire(harness, "out")].count("turn/interrupt")


@pytest.mark.parametrize(
    ("lost", "count"), [pytest.param("turn/started", 0, marks=pytest.mark.long), ("turn/completed", 1)]
)
def test_turn_that_started_is_interrupted_once(harness: Harness, lost: str, count: int) -> None:
    """Even if its end is lost. One that did not start is not interrupted: its process is replaced."""
    fleet = harness.fleet([SILENT, ANSWER], codex=disturbed(harness.folder, Once("in", lost, "drop")))
    assert take(fleet.client(ROLE), 1, SHORT).status == "stalled"
    assert interrupts(harness) == count
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
    codex = codex_after(tmp_path, 'trap "" XFSZ', "ulimit -f 5000")
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
    line = '{"method": "turn/completed", "params": {}}'
    assert take(harness.client([ANSWER], codex=codex_after(tmp_path, f"echo '{line}' >&2"))).status == "completed"
    assert line in harness.stderr.read_text()
    assert {} not in [message.get("params") for message in wire(harness, "in") if "turn" in message.get("method", "")]


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Codex home that an API key was stored in by the real ``codex login``, under a name that can lead elsewhere."""
    (tmp_path / "homes/real").mkdir(parents=True)
    write_files(tmp_path, {"codex_home": WRITABLE})
    home = tmp_path / "codex_home"
    monkeypatch.setenv("CODEX_HOME", str(home))
    log_in(home)
    return home


@pytest.mark.skipif(not Path("/proc/sys").exists(), reason="needs a folder that nobody can write in, root neither")
def test_unwritable_home_is_found_before_anything_starts(tmp_path: Path, screen: Screen, logged_in: Path) -> None:
    """This applies to a run and to a resume."""
    started = tmp_path / "started"
    codex = codex_after(tmp_path, f"touch {started}")
    TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {})
    answers = Playbook.model_validate({"name": "login", "roles": {"one": [say(), say(status="DONE")]}})
    with PlaybookServer(answers) as server:
        table = (
            f'name = "OpenAI"\nbase_url = "{server.base_url}"\nwire_api = "responses"\nrequires_openai_auth = true\n'
        )
        (logged_in / "config.toml").write_text(f"[model_providers.mine]\n{table}")
        model = ("-c", 'model_provider="mine"', "--codex-bin", str(codex))
        arguments = ("run", "--goal", "x", "--roles", "roles", "--workspace", "workspace", "--cycles", "1", *model)
        write_files(tmp_path, {"codex_home": UNWRITABLE})
        assert_refused(screen.give(*arguments), logged_in)
        assert not (tmp_path / "runs").exists()
        assert not started.exists()
        write_files(tmp_path, {"codex_home": WRITABLE})
        first = screen.give(*arguments)
        assert (first.exit_code, first.record["outcome"]) == (1, "cycles_used_up"), first.text
        started.unlink()
        write_files(tmp_path, {"codex_home": UNWRITABLE})
        assert_refused(screen.give(*first.next_command), logged_in)
        assert (first.record["outcome"], len(first.turns), started.exists()) == ("cycles_used_up", 1, False)
        write_files(tmp_path, {"codex_home": WRITABLE})
        again = screen.give(*first.next_command)
    assert (again.exit_code, again.record["outcome"], len(again.turns)) == (0, "done", 2), again.text


def assert_refused(seen: Seen, home: Path) -> None:
    assert seen.exit_code == 2
    assert f"error: Codex's home {home} cannot be written: " in seen.text
    assert "name another one with CODEX_HOME" in seen.text
