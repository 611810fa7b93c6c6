"""A Codex home that nobody can write in: found before anything starts, and costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.faults.screen import Screen, Seen
from tests.support.codex import log_in
from tests.support.teams import TeamFolder, say

pytestmark = pytest.mark.real


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Codex home that an API key was stored in by the real ``codex login``, under a name that can lead elsewhere."""
    (tmp_path / "homes/real").mkdir(parents=True)
    home = tmp_path / "codex_home"
    home.symlink_to("homes/real")
    monkeypatch.setenv("CODEX_HOME", str(home))
    log_in(home)
    return home


@pytest.mark.skipif(not Path("/proc/sys").exists(), reason="needs a folder that nobody can write in, root neither")
def test_unwritable_home_is_found_before_anything_starts(tmp_path: Path, screen: Screen, logged_in: Path) -> None:
    """This applies to a run and to a resume."""
    codex, started = tmp_path / "codex", tmp_path / "started"
    codex.write_text(f'#!/bin/sh\ntouch {started}\nexec {find_codex(None, {})} "$@"\n')
    codex.chmod(0o755)
    TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {})
    answers = Playbook.model_validate({"name": "login", "roles": {"one": [say(), say(status="DONE")]}})
    with PlaybookServer(answers) as server:
        table = (
            f'name = "OpenAI"\nbase_url = "{server.base_url}"\nwire_api = "responses"\nrequires_openai_auth = true\n'
        )
        (logged_in / "config.toml").write_text(f"[model_providers.mine]\n{table}")
        model = ("-c", 'model_provider="mine"', "--codex-bin", str(codex))
        arguments = ("run", "--goal", "x", "--roles", "roles", "--workspace", "workspace", "--cycles", "1", *model)
        make_read_only(logged_in)
        assert_refused(screen.give(*arguments), logged_in)
        assert not (tmp_path / "runs").exists()
        assert not started.exists()
        make_writable(logged_in)
        first = screen.give(*arguments)
        assert (first.exit_code, first.record["outcome"]) == (1, "cycles_used_up"), first.text
        started.unlink()
        make_read_only(logged_in)
        assert_refused(screen.give(*first.next_command), logged_in)
        assert (first.record["outcome"], len(first.turns), started.exists()) == ("cycles_used_up", 1, False)
        make_writable(logged_in)
        again = screen.give(*first.next_command)
    assert (again.exit_code, again.record["outcome"], len(again.turns)) == (0, "done", 2), again.text


def make_read_only(home: Path) -> None:
    home.unlink()
    home.symlink_to("/proc/sys")


def make_writable(home: Path) -> None:
    home.unlink()
    home.symlink_to("homes/real")


def assert_refused(seen: Seen, home: Path) -> None:
    assert seen.exit_code == 2
    assert f"error: Codex's home {home} cannot be written: " in seen.text
    assert "name another one with CODEX_HOME" in seen.text
