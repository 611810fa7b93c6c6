"""A model or an effort that Codex does not know is reported before the first turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.catalog.role_spec import EFFORTS
from codex_multi_role.codex.client import RoleClient
from tests.support.codex import Harness, harness
from tests.support.models import any_model, message
from tests.support.teams import TeamFolder

pytestmark = pytest.mark.real

__all__ = ["harness"]
DONE = json.dumps({"summary": "fine"})


def warnings_before_the_first_turn(team: TeamFolder) -> list[str]:
    kinds = [event["type"] for event in team.events]
    return [event["message"] for event in team.events[: kinds.index("turn_started")] if event["type"] == "warning"]


@pytest.mark.parametrize(("effort", "warned"), [("ultra", True), ("low", False)])
def test_effort_that_the_model_does_not_list_is_a_warning(tmp_path: Path, effort: str, warned: bool) -> None:
    team = TeamFolder(tmp_path, {"one": {"reasoning_effort": effort}}, {})
    with any_model(lambda _: message(DONE)) as served:
        assert team.run(playbook=None, config=served.config, model="gpt-5.5").exit_code == 1
    said = "one: the model gpt-5.5 does not list the reasoning effort ultra; it lists low, medium, high, xhigh"
    assert warnings_before_the_first_turn(team) == ([said] if warned else [])


@pytest.mark.parametrize("by_role", [True, pytest.param(False, marks=pytest.mark.long)])
def test_effort_in_settings_of_codex_is_checked_as_well(tmp_path: Path, by_role: bool) -> None:
    setting = {"model_reasoning_effort": "banana"}
    team = TeamFolder(tmp_path, {"one": {"codex_config": setting} if by_role else {}}, {})
    given = () if by_role else ('model_reasoning_effort="banana"',)
    with any_model(lambda _: message(DONE)) as served:
        team.run(playbook=None, config=(*served.config, *given), model="gpt-5.5")
    [warned] = warnings_before_the_first_turn(team)
    assert "does not list the reasoning effort banana; it lists low" in warned


@pytest.mark.parametrize("needs_login", [True, False])
def test_unknown_model_of_openai_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_login: bool
) -> None:
    """Of another provider's models Codex knows nothing before the turn."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "auth.json").write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-" + "a" * 40}))
    monkeypatch.setenv("CODEX_HOME", str(home))
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with any_model(lambda _: message(DONE)) as served:
        auth = f"requires_openai_auth = {str(needs_login).lower()}\n"
        table = f'[model_providers.mine]\nname = "mine"\nbase_url = "{served.base_url}"\n{auth}'
        (home / "config.toml").write_text(table)
        team.run(playbook=None, config=('model_provider="mine"',), model="gpt-nonsense")
    found = [text.partition(";")[0] for text in warnings_before_the_first_turn(team)]
    assert found == (["one: Codex does not know the model gpt-nonsense"] if needs_login else [])


def test_every_effort_of_the_binary_is_known(harness: Harness) -> None:
    client: RoleClient = harness.client([{"json": {}}])
    listed = client._transport.request("model/list", {"includeHidden": True}, 15.0)
    efforts = {each["reasoningEffort"] for model in listed["data"] for each in model["supportedReasoningEfforts"]}
    assert efforts
    assert efforts <= set(EFFORTS)
