"""With a login, the user's own Codex home is shared by all roles. The login is real, the model is scripted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_multi_role import run
from codex_multi_role.codex.warm_home import user_store
from codex_multi_role.errors import CodexNotLoggedIn
from codex_multi_role.playbook import Playbook, PlaybookServer
from tests.support.codex import API_KEY, log_in
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.real


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Codex home with an API key in it, stored by the real ``codex login``."""
    home = tmp_path / "codex_home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    log_in(home)
    return home


def test_roles_share_user_home_and_first_process_starts_alone(
    tmp_path: Path, logged_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No databases are made for other homes then."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    roles: dict[str, Record] = {"one": {"behaviors": {"can_finish": True}}, "two": {}, "three": {}, "four": {}}
    team = TeamFolder(tmp_path, roles, {})
    playbook = Playbook.model_validate({"name": "login", "roles": {"one": [say(status="DONE")]}})
    events: list[Record] = []
    with PlaybookServer(playbook) as server:
        config = (f'openai_base_url="{server.base_url}"',)
        report = run(team.options(playbook=None, config=config), events.append)
    assert (report.outcome, report.exit_code) == ("done", 0)
    assert next(event["role"] for event in events if event["type"] == "role_started") == "one"
    assert len(list((logged_in / "sessions").rglob("rollout-*"))) == 1
    assert not list((report.folder / ".codex").glob("one"))
    assert not user_store(os.environ).exists()
    written = [path for path in report.folder.rglob("*") if path.is_file()]
    assert not [path for path in written if API_KEY.encode() in path.read_bytes()]


def test_missing_login_spends_nothing_and_lists_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names codex login, an API key, another model provider and a playbook."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "empty"))
    (tmp_path / "empty").mkdir()
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with pytest.raises(CodexNotLoggedIn) as caught:
        run(team.options().changed(playbook=None))
    assert all(way in caught.value.hint for way in ("codex login", "API key", "model_provider", "--playbook"))
    assert caught.value.exit_code == 2
    assert not team.runs.exists()


@pytest.mark.sample("codex")
def test_binary_is_at_hand_for_logging_in() -> None:
    command = [sys.executable, "-m", "codex_multi_role", "codex", "login", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=dict(os.environ))
    assert "codex login" in done.stdout
