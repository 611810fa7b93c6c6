"""What Codex warns of is shown, once per text and run, wherever a run is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.teams import Record, TeamFolder, say, warnings

pytestmark = pytest.mark.real

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
    (team.workspace / ".codex").mkdir()
    (team.workspace / ".codex" / "config.toml").write_text("model_verbosity = 'high'\n")
    assert team.run().exit_code == 1
    assert warnings(team.events) == ["one: a project's .codex settings (config, hooks, rules) have no effect in a run"]
