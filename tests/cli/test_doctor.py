from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.cli.diagnosis import pinned_version
from codex_multi_role.codex.locator import find_codex

from .console import console


def test_every_line_says_ok_or_what_to_do(tmp_path: Path) -> None:
    done = console("doctor", "-c", "model_provider=ollama", folder=tmp_path)
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert all(line.startswith(("ok", "problem", "         ")) for line in lines)
    assert [line.split()[1] for line in lines if not line.startswith(" ")] == [
        "python", "sqlite", "git", "codex", "protocol", "sandbox", "login", "tests", "runs", "open",
    ]  # fmt: skip
    assert pinned_version() in done.stdout
    assert done.returncode == (2 if "problem" in done.stdout else 0)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_binary_is_a_problem_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    done = console("doctor", "--json", "--codex-bin", "nowhere", folder=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 2
    assert not findings["codex"]["ok"]
    assert "--codex-bin" in findings["codex"]["advice"]
    assert findings["git"]["ok"]
    assert "runs" in findings


def test_a_binary_that_is_not_codex_is_a_problem(tmp_path: Path) -> None:
    impostor = tmp_path / "codex"
    impostor.write_text("#!/bin/sh\necho codex-cli 0.1.0\n")
    impostor.chmod(0o755)
    done = console("doctor", "--json", "--codex-bin", str(impostor), folder=tmp_path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert findings["codex"]["detail"].startswith("codex-cli 0.1.0")
    assert pinned_version() in findings["codex"]["advice"]
    assert not findings["protocol"]["ok"]
    assert "does not print its protocol" in findings["protocol"]["detail"]


def test_a_message_of_another_shape_is_named(tmp_path: Path) -> None:
    """As a newer binary would print it."""
    newer, codex = tmp_path / "codex", find_codex(None, {})
    change = """sed -i 's/"threadId"/"conversationId"/g' "$5/ServerNotification.json\""""
    newer.write_text(f'#!/bin/sh\n{codex} "$@" || exit\n[ "$2" != generate-json-schema ] || {change}\n')
    newer.chmod(0o755)
    done = console("doctor", "--json", "--codex-bin", str(newer), folder=tmp_path)
    (protocol,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "protocol"]
    assert "turn/completed" in protocol["detail"]
    assert "turn/start," not in protocol["detail"]
    assert pinned_version() in protocol["advice"]


def test_a_runs_folder_below_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = console("doctor", "--json", "--runs-dir", "taken/runs", folder=tmp_path)
    (runs,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "runs"]
    assert not runs["ok"]
    assert "taken" in runs["detail"]


def test_a_config_that_cannot_be_read_is_no_missing_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("a = [")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    done = console("doctor", "--json", folder=tmp_path)
    (login,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "login"]
    assert "config.toml:1" in login["detail"]


def test_a_provider_that_codex_does_not_know_is_a_problem(tmp_path: Path) -> None:
    done = console("doctor", "--json", "-c", "model_provider=nowhere", folder=tmp_path)
    (login,) = [finding for finding in json.loads(done.stdout) if finding["name"] == "login"]
    assert not login["ok"]
    assert "nowhere" in login["detail"]
    assert login["advice"]
