"""What a login sends reaches the provider through the recorder, and nothing else. The provider is a stand-in."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.extensions.replays.recording import Recording
from tests.support.codex import log_in
from tests.support.recordings import KEY, Provider, exchanges_of, provider_of
from tests.support.teams import Record, TeamFolder, read, say

pytestmark = pytest.mark.real

ROLES: dict[str, Record] = {"one": {"behaviors": {"can_finish": True}}}
PLAYS: dict[str, list[Any]] = {"one": [say(status="DONE")]}
ACCOUNT = "account-0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "codex_home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    return home


def recorded(folder: Path, provider: Provider, *config: str) -> Path:
    team, file = TeamFolder(folder, ROLES, {}), folder / "run.ndjson"
    settings = (f'openai_base_url="{provider.base_url}"', *config)
    report = team.run(playbook=None, config=settings, record=file)
    assert (report.outcome, report.exit_code) == ("done", 0), report
    [exchange] = exchanges_of(file)
    assert (exchange["provider"], exchange["end"]) == ("OpenAI", "completed")
    assert exchange["model"]
    return file


def test_api_key_arrives_and_a_replay_needs_none(tmp_path: Path, home: Path) -> None:
    log_in(home, KEY)
    with provider_of(PLAYS) as provider:
        file = recorded(tmp_path, provider)
    assert [headers["authorization"] for headers in provider.received] == [f"Bearer {KEY}"]
    assert KEY not in file.read_text()
    (home / "auth.json").unlink()
    team = TeamFolder(tmp_path, ROLES, {})
    report = team.run(playbook=None, replay=file)
    assert read(report.folder / "replay.json")["differences"] == []
    # The same model, by name: which tools a model has goes by it.
    models = {turn["model"] for turn in map(read, report.folder.glob("one/turn_*/turn.json"))}
    assert models == {Recording.load(file).models["one"]}


@pytest.mark.long
def test_chatgpt_login_arrives(tmp_path: Path, home: Path) -> None:
    """Only here Codex is logged in with an account."""
    token = _jwt({"email": "a@b.example", "exp": 4_102_444_800, "https://api.openai.com/auth": {
        "chatgpt_plan_type": "pro", "chatgpt_account_id": ACCOUNT, "chatgpt_user_id": "u1"}})  # fmt: skip
    tokens = {"id_token": token, "access_token": token, "refresh_token": "refresh-0123456789", "account_id": ACCOUNT}
    login = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": "2126-01-01T00:00:00Z"}
    (home / "auth.json").write_text(json.dumps(login))
    with provider_of(PLAYS) as provider:
        provider.about_accounts = {"accounts": [{
            "id": ACCOUNT, "account_id": ACCOUNT, "name": "mine", "structure": "personal", "plan_type": "pro",
            "profile_picture_url": None, "workspace_backend_origin": "https://chatgpt.com",
            "account_routing_override": "NO_CONSTRAINT"}], "default_account_id": ACCOUNT}  # fmt: skip
        backend = provider.base_url.removesuffix("/v1") + "/backend-api"
        file = recorded(tmp_path, provider, f'chatgpt_base_url="{backend}"')
    [turn] = provider.received
    assert (turn["authorization"], turn["chatgpt-account-id"]) == (f"Bearer {token}", ACCOUNT)
    assert "content-encoding" not in turn  # Codex would compress it otherwise, with this login
    text = file.read_text()
    assert token not in text
    assert ACCOUNT not in text


def _jwt(claims: dict[str, Any]) -> str:
    parts = ({"alg": "none"}, claims)
    written = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return f"{'.'.join(written)}.c2ln"
