from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.extensions.setup.diagnosis import _git, pinned_version
from tests.support.console import console
from tests.support.workspaces import write_files, write_program

pytestmark = pytest.mark.real


@pytest.mark.sample("doctor")
def test_every_line_says_ok_or_what_to_do(tmp_path: Path) -> None:
    done = console("doctor", "-c", "model_provider=ollama", folder=tmp_path)
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert all(line.startswith(("ok", "problem", "         ")) for line in lines)
    assert [line.split()[1] for line in lines if not line.startswith(" ")] == [
        "python", "environment", "git", "codex", "protocol", "sandbox", "login", "tests", "runs", "open",
    ]  # fmt: skip
    assert pinned_version() in done.stdout
    assert done.returncode == (2 if "problem" in done.stdout else 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [[], ["--no-test-sandbox"]], ids=["sandbox", "none"])
def test_tests_of_the_project_are_run_on_request(tmp_path: Path, options: list[str]) -> None:
    text = "import socket\n\ndef test_a(): socket.socket()\ndef test_b(): test_a()\ndef test_c(): open('left', 'w')\n"
    (tmp_path / "test_a.py").write_text(text)
    lines = console("doctor", "--tests", *options, folder=tmp_path).stdout.splitlines()
    (told,) = [number for number, line in enumerate(lines) if " test run " in line]
    denied = "2 tests need sockets, which the test sandbox forbids (--no-test-sandbox runs them without it)"
    words = (
        "ok       test run   passed: 3 passed"
        if options
        else f"problem  test run   failed: 1 passed, 2 failed; {denied}"
    )
    assert lines[told] == words
    assert ("`codex-multi-role doctor --tests --no-test-sandbox`" in lines[told + 1]) == (not options)
    assert [each.name for each in tmp_path.iterdir()] == ["test_a.py"]


def test_missing_binary_is_reported_and_other_checks_run(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = console("doctor", "--json", "--codex-bin", "nowhere", "--runs-dir", "taken/runs", folder=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 2
    assert not findings["codex"]["ok"]
    assert "--codex-bin" in findings["codex"]["advice"]
    assert findings["git"]["ok"]
    assert not findings["runs"]["ok"]
    assert "taken" in findings["runs"]["detail"]


def test_binary_that_is_not_codex_is_a_problem(tmp_path: Path) -> None:
    impostor = write_program(tmp_path / "codex", "#!/bin/sh\necho codex-cli 0.1.0\n")
    done = console("doctor", "--json", "--codex-bin", str(impostor), folder=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings["codex"]["detail"].startswith("codex-cli 0.1.0")
    assert pinned_version() in findings["codex"]["advice"]
    assert not findings["protocol"]["ok"]
    assert "does not print its protocol" in findings["protocol"]["detail"]


def test_git_too_old_to_merge_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = subprocess.CompletedProcess("git", 0, b"git version 2.30.2\n")
    monkeypatch.setattr("codex_multi_role.extensions.setup.diagnosis.Git.run", lambda *_: old)
    finding = _git()
    assert (finding.ok, finding.detail) == (False, "git 2.30.2 is too old to merge copies of the workspace")
    assert "upgrade git to 2.39 or newer" in finding.advice


@pytest.mark.long
def test_message_of_another_shape_is_named(tmp_path: Path) -> None:
    """As a newer binary would print it, which no short test does."""
    newer, codex = tmp_path / "codex", find_codex(None, {})
    change = """sed -i 's/"threadId"/"conversationId"/g' "$5/ServerNotification.json\""""
    write_program(newer, f'#!/bin/sh\n{codex} "$@" || exit\n[ "$2" != generate-json-schema ] || {change}\n')
    done = console("doctor", "--json", "--codex-bin", str(newer), folder=tmp_path)
    (protocol,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "protocol"]
    assert "turn/completed" in protocol["detail"]
    assert "turn/start," not in protocol["detail"]
    assert pinned_version() in protocol["advice"]


def test_unreadable_config_is_not_reported_as_missing_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("a = [")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    done = console("doctor", "--json", folder=tmp_path)
    (login,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "login"]
    assert "config.toml:1" in login["detail"]


def test_mcp_servers_of_the_roles_are_listed(tmp_path: Path) -> None:
    """Whichever key defines them; those of the user are off."""
    home, started = tmp_path / "home", tmp_path / "started"
    write_files(home, {"config.toml": '[mcp_servers.mine]\ncommand = "x"\n'})
    script = f"open({str(started)!r}, 'w')"
    servers = {
        "gone": {"command": "no-such-program"},
        "remote": {"url": "https://docs.example/mcp", "bearer_token_env_var": "NOT_SET"},
        "runs": {"command": sys.executable, "args": ["-c", script], "env_vars": ["SET"]},
    }
    config = {"mcp_servers.old": {"command": "/nonexistent"}}
    roles = [
        {"name": "one", "prompt_text": "Do.", "mcp_servers": servers},
        {"name": "two", "prompt_text": "Do.", "codex_config": config},
    ]
    (tmp_path / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": roles}))
    variables = {"CODEX_HOME": str(home), "SET": "x"}
    done = console("doctor", "--json", "--roles", "catalog.yaml", folder=tmp_path, variables=variables)
    found = [each for each in json.loads(done.stdout) if each["name"] == "mcp server"]
    assert [(each["ok"], each["detail"]) for each in found] == [
        (False, "role one: gone: no-such-program: program not found"),
        (False, "role one: remote: https://docs.example/mcp: NOT_SET not set"),
        (True, f"role one: runs: {shlex.join([sys.executable, '-c', script])}"),
        (False, "role two: old: /nonexistent: program not found"),
        (True, "from your config.toml, not used in runs: mine"),
    ]
    assert all(each["ok"] or each["advice"] for each in found)
    assert done.returncode == 2
    assert not started.exists()


def test_program_in_the_workspace_is_not_found_for_a_server(tmp_path: Path) -> None:
    """A run does not take it either: a role could have written it."""
    program = write_program(tmp_path / "bin" / "docs-server", "#!/bin/sh\n")
    role = {"name": "one", "prompt_text": "Do.", "mcp_servers": {"docs": {"command": "docs-server"}}}
    (tmp_path / "catalog.yaml").write_text(yaml.safe_dump({"version": 1, "roles": [role]}))
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    given = ("doctor", "--json", "--roles", "catalog.yaml")
    done = console(*given, folder=tmp_path, variables={"PATH": path})
    [found] = [each for each in json.loads(done.stdout) if each["name"] == "mcp server"]
    assert not found["ok"]
    assert "program not found" in found["detail"]


def test_invalid_catalog_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "catalog.yaml").write_text("version: 1\nroles: []\n")
    done = console("doctor", "--json", "--roles", "catalog.yaml", folder=tmp_path)
    [found] = [each for each in json.loads(done.stdout) if each["name"] == "roles"]
    assert "catalog.yaml:2:1: roles: must not be empty" in found["detail"]
    assert done.returncode == 2
