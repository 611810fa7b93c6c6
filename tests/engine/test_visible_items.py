"""Calls of MCP tools, web searches and summaries of reasoning can be read in a turn's items and in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.codex.turn_outcome import item_text
from tests.support.mcp_server import ECHO_SERVER
from tests.support.models import Body, Items, any_model, call, message
from tests.support.teams import TeamFolder

pytestmark = pytest.mark.real


def echoing(body: Body) -> Items:
    if "function_call_output" in json.dumps(body["input"]):
        return message(json.dumps({"summary": "fine"}))
    return call("echo", "c1", "mcp__echo", word="cuckoo")


@pytest.mark.extensions
def test_call_of_an_mcp_tool_is_readable(tmp_path: Path) -> None:
    """With server, tool, arguments and result."""
    config = {"mcp_servers.echo": ECHO_SERVER}
    team = TeamFolder(tmp_path, {"one": {"codex_config": config}}, {})
    with any_model(echoing) as served:
        report = team.run(playbook=None, config=served.config, model="m")
    items = (report.folder / "one/turn_001/items_text.md").read_text()
    assert "## MCP tool: echo/echo (status: completed)" in items
    assert 'arguments: {"word": "cuckoo"}' in items
    assert "heard cuckoo" in items
    assert "heard cuckoo" in (report.folder / "report.html").read_text()
    assert "MCP tool: echo/echo" in [event["activity"] for event in team.of_type("role_activity")]


def thinking(_: Body) -> Items:
    reasoning = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "First the nest."}]}
    action = {"type": "search", "query": "cuckoo nests"}
    searched = {"type": "web_search_call", "id": "w1", "status": "completed", "action": action}
    return [reasoning, searched, *message(json.dumps({"summary": "fine"}))]


@pytest.mark.extensions
def test_reasoning_and_web_searches_are_readable(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {})
    with any_model(thinking) as served:
        report = team.run(playbook=None, config=served.config, model="m")
    items = (report.folder / "one/turn_001/items_text.md").read_text()
    page = (report.folder / "report.html").read_text()
    for text in ("## reasoning", "First the nest.", "## web search: cuckoo nests"):
        assert text in items
        assert text in page


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "reasoning", "summary": ["First.", "Second."]}, "## reasoning\n\nFirst.\n\nSecond.\n"),
        ({"type": "reasoning", "summary": 3}, "## reasoning\n\n\n"),
        (
            {"type": "webSearch", "query": "q", "action": {"type": "search", "query": "q"}, "results": None},
            '## web search: q\n\naction: {"type": "search", "query": "q"}\n',
        ),
        (
            {"type": "mcpToolCall", "server": "s", "tool": "t", "arguments": {}, "error": {"message": "no"}},
            '## MCP tool: s/t\n\narguments: {}\n\nerror: {"message": "no"}\n',
        ),
    ],
)
def test_items_have_their_text(item: dict[str, object], text: str) -> None:
    assert item_text(item) == text
