"""What Codex says of models and settings: unknown ones are reported before the first turn, warnings once per run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.catalog.role_spec import EFFORTS
from codex_multi_role.codex.client import RoleClient
from tests.support.codex import Harness, harness
from tests.support.models import any_model, message
from tests.support.teams import Record, TeamFolder, say, warnings
from tests.support.workspaces import write_files

pytestmark = pytest.mark.real

__all__ = ["harness"]
DONE = json.dumps({"summary": "fine"})


def warnings_before_the_first_turn(team: TeamFolder) -> list[str]:
    kinds = [event["type"] for event in team.events]
    return [event["message"] for event in team.events[: kinds.index("turn_started")] if event["type"] == "warning"]


def test_effort_that_the_model_does_not_list_is_a_warning(tmp_path: Path) -> None:
    """Wherever it is set."""
    odd: Record = {"codex_config": {"model_reasoning_effort": "banana"}}
    efforts: dict[str, Record] = {"high": {"reasoning_effort": "ultra"}, "listed": {"reasoning_effort": "low"}}
    team = TeamFolder(tmp_path, {**efforts, "odd": odd}, {})
    with any_model(lambda _: message(DONE)) as served:
        assert team.run(playbook=None, config=served.config, model="gpt-5.5").exit_code == 1
    unlisted = "the model gpt-5.5 does not list the reasoning effort {}; it lists low, medium, high, xhigh"
    assert sorted(warnings(team.events)) == [f"high: {unlisted.format('ultra')}", f"odd: {unlisted.format('banana')}"]
    assert warnings_before_the_first_turn(team)


def test_unknown_model_of_openai_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another provider's models Codex knows nothing before the turn."""
    home = tmp_path / "home"
    write_files(home, {"auth.json": json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-" + "a" * 40})})
    monkeypatch.setenv("CODEX_HOME", str(home))
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with any_model(lambda _: message(DONE)) as served:
        table = f'name = "mine"\nbase_url = "{served.base_url}"\nrequires_openai_auth = true\n'
        (home / "config.toml").write_text(f"[model_providers.mine]\n{table}")
        team.run(playbook=None, config=('model_provider="mine"',), model="gpt-nonsense")
    found = [text.partition(";")[0] for text in warnings_before_the_first_turn(team)]
    assert found == ["one: Codex does not know the model gpt-nonsense"]


def test_every_effort_of_the_binary_is_known(harness: Harness) -> None:
    client: RoleClient = harness.client([{"json": {}}])
    listed = client._transport.request("model/list", {"includeHidden": True}, 15.0)
    efforts = {each["reasoningEffort"] for model in listed["data"] for each in model["supportedReasoningEfforts"]}
    assert efforts
    assert efforts <= set(EFFORTS)


UNKNOWN_KEY = "Codex is ignoring 1 unrecognized configuration setting. Check for typos or deprecated settings. "
DEPRECATED = "`[features].web_search_request` is deprecated because web search is enabled by default."


@pytest.mark.extensions
def test_codex_warnings_are_events_once_per_text_and_run(tmp_path: Path) -> None:
    """Two roles and a resumed session get the same warnings of their configuration; each counts once."""
    keys: Record = {"codex_config": {"features.nonsense": True, "features.web_search_request": False}}
    team = TeamFolder(tmp_path, {"one": keys, "two": keys}, {"one": [say()], "two": [say()]})
    report = team.run()
    assert len(warnings(team.events)) == 2
    assert all(any(text in message for message in warnings(team.events)) for text in (UNKNOWN_KEY, DEPRECATED))
    page = (report.folder / "report.html").read_text()
    assert "features.nonsense" in page
    team.resume(cycles=2)
    assert warnings(team.events) == []


def test_mcp_server_that_does_not_start_is_a_warning(tmp_path: Path) -> None:
    keys: Record = {"codex_config": {"mcp_servers.gone": {"command": "/nonexistent"}}}
    team = TeamFolder(tmp_path, {"one": keys}, {"one": [say()]})
    assert team.run().exit_code == 1
    (message,) = warnings(team.events)
    assert message.startswith("one: MCP client for `gone` failed to start")


def test_ignored_project_settings_give_a_warning(tmp_path: Path) -> None:
    """The warning says that the settings have no effect. Codex's own advice, to trust the project, would change
    nothing.
    """
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    write_files(team.workspace, {".codex/config.toml": "model_verbosity = 'high'\n"})
    assert team.run().exit_code == 1
    assert warnings(team.events) == ["one: a project's .codex settings (config, hooks, rules) have no effect in a run"]
