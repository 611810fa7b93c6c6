"""Secrets reach neither the programs that a model starts nor what a run leaves to be read."""

from __future__ import annotations

import json
import re
import shlex
import stat
from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.steps.turn_events import SUMMARY_LENGTH
from tests.support.teams import Record, TeamFolder, say, with_flow

pytestmark = pytest.mark.usefixtures("scripted_codex")

SECRET = "hunter2-hunter2"
TOKEN = "ghp_0123456789abcdefghij"
EXACT = re.compile(
    r"/handoff\.json|/changes\.patch|/turn\.json|/journal\.sqlite|/\.codex/|/\.snapshots/|/controller_state\.json|/catalog/"
)


@pytest.mark.usefixtures("real_codex")
def test_what_is_left_to_be_read_holds_no_secret_whoever_said_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_PASSWORD", SECRET)
    told = f"the password is {SECRET}, the token {TOKEN}"
    code = f"def test_it():\n    print({told!r})\n    assert {told!r} == 1\n"
    answer = say(told, analysis_md=told, files=[{"path": "test_it.py", "content": code}])
    steps = [
        {"id": "write", "ask": "writer", "prompt": f"Note: {told}"},
        {"id": "keep", "review": {"question": f"Keep it? {told}", "show": told}},
    ]
    shell = {"call": "exec_command", "arguments": {"cmd": f"echo {shlex.quote(told)}"}}
    team = TeamFolder(
        tmp_path, {"writer": {"behaviors": {"apply_files": True}}}, {"writer": [{"steps": [shell, answer]}]}
    )
    with_flow(team, {"steps": steps})
    report = team.run(flow="own", run_tests=True, yes=True)
    assert report.outcome == "tests_failed"
    files = [
        path
        for path in report.folder.rglob("*")
        if path.is_file() and not EXACT.search(f"/{path.relative_to(tmp_path)}")
    ]
    leaking = [
        str(path) for path in files if SECRET.encode() in path.read_bytes() or TOKEN.encode() in path.read_bytes()
    ]
    assert leaking == []
    assert {"prompt.txt", "items_text.md", "analysis.md", "pytest_output.txt", "junit.xml", "keep.1.json"} <= {
        path.name for path in files
    }
    assert TOKEN not in json.dumps(team.events)
    handoff = json.loads((report.folder / "writer/turn_001/handoff.json").read_text())
    assert handoff["summary"] == told


@pytest.mark.usefixtures("real_codex")
def test_secret_is_masked_before_text_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise part of a secret would remain where the text of an event is cut."""
    monkeypatch.setenv("MY_PASSWORD", SECRET)
    within_the_limit = SUMMARY_LENGTH - len(SECRET) // 2
    told = f"{'x' * within_the_limit}{SECRET}"
    shell = {"call": "exec_command", "arguments": {"cmd": f"{'true;' * (within_the_limit // 5)} : {SECRET}"}}
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [{"steps": [shell, say(told)]}]})
    report = team.run()
    assert {"command_ended", "turn_ended"} <= {event["type"] for event in team.events}
    assert SECRET[:6] not in (report.folder / "events.jsonl").read_text()


@pytest.mark.usefixtures("real_codex")
def test_neither_a_commands_nor_a_tests_environment_has_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do they see the environments of those that started them."""
    monkeypatch.setenv("MY_API_KEY", SECRET)
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    code = """
import os, pathlib

def test_it():
    assert not [name for name in os.environ if name.startswith("MY_")]
    assert not [path for path in pathlib.Path("/proc").glob("[0-9]*/environ") if b"MY_" in path.read_bytes()]
"""
    cmd = {"call": "exec_command", "arguments": {"cmd": "env > env.txt; cat /proc/[0-9]*/environ >> env.txt"}}
    entry = {"steps": [cmd, say(files=[{"path": "test_it.py", "content": code}])]}
    roles = {"writer": {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_write": True}}}
    team = TeamFolder(tmp_path, roles, {"writer": [entry]})
    report = team.run(run_tests=True)
    assert "MY_" not in (team.workspace / "env.txt").read_text()
    assert json.loads((report.folder / "tests/001/result.json").read_text())["status"] == "passed"


def test_only_its_user_can_look_into_a_run(tmp_path: Path) -> None:
    folder = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]}).run().folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_goal_that_holds_a_secret_is_masked_wherever_it_is_shown(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    record = json.loads((team.run(goal=f"rotate {TOKEN}").folder / "run.json").read_text())
    assert record["goal"] == "rotate [redacted]"
    assert record["options"]["goal"] == f"rotate {TOKEN}"


def test_setting_with_secret_is_refused_before_writing(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with pytest.raises(
        UsageError, match=r"-c model_providers\.x\.http_headers: contains what looks like a secret"
    ) as caught:
        team.run(config=(f'model_providers.x.http_headers={{Authorization="Bearer {TOKEN}"}}',))
    assert "env_http_headers" in caught.value.hint
    assert TOKEN not in str(caught.value)
    assert not team.runs.exists()
    team.roles["one"]["codex_config"] = {"model_providers.x.experimental_bearer_token": TOKEN}
    team.write_catalog()
    with pytest.raises(DefinitionError, match=r"catalog\.yaml: role one: codex_config\.model_providers"):
        team.run()


@pytest.mark.parametrize(
    "server",
    [
        {"command": "x", "args": [TOKEN]},
        {"command": "x", "env": {"API_KEY": "any-value"}},
        {"url": f"http://x/{TOKEN}"},
    ],
)
def test_secret_of_an_mcp_server_is_refused(tmp_path: Path, server: Record) -> None:
    team = TeamFolder(tmp_path, {"one": {"mcp_servers": {"docs": server}}}, {"one": [say()]})
    with pytest.raises(
        DefinitionError, match=r"role one: mcp_servers\.docs: contains what looks like a secret"
    ) as caught:
        team.run()
    assert "env_vars" in caught.value.hint
    assert not team.runs.exists()
