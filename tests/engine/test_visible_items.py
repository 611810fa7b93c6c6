"""What happens within a turn can be seen: MCP tools, web searches, reasoning, and sub-agents, whose tokens count."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codex_multi_role import RunReport
from codex_multi_role.codex.turn_outcome import item_text
from tests.support.console import console
from tests.support.mcp_server import ECHO_SERVER
from tests.support.models import INPUT_TOKENS, OUTPUT_TOKENS, Body, Items, any_model, call, message
from tests.support.sub_agents import DONE, is_sub_agents, spawning
from tests.support.teams import Record, TeamFolder, warnings

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


FORCING = "gpt-6.1-sol"
"""Its metadata in the binary's catalog demands MultiAgentV2."""


def finished(body: Body) -> Items:
    return message(DONE)


def test_no_model_is_offered_sub_agents(tmp_path: Path) -> None:
    """Nor do we warn of the model of a provider whose models Codex does not know."""
    team = TeamFolder(tmp_path, {"one": {"model": FORCING}, "two": {"model": "m"}}, {})
    with any_model(finished) as served:
        assert team.run(playbook=None, config=served.config).exit_code == 1
    assert [body["model"] for body in served.bodies] == [FORCING, "m"]
    assert "spawn_agent" not in json.dumps(served.bodies)
    assert not any("Codex does not know" in each for each in warnings(team.events))


def test_settings_of_a_role_switch_sub_agents_on(tmp_path: Path) -> None:
    settings = ("agents.enabled", "features.multi_agent", "features.multi_agent_v2")
    roles: dict[str, Record] = {f"role{number}": {"codex_config": {name: True}} for number, name in enumerate(settings)}
    with any_model(finished) as served:
        team = TeamFolder(tmp_path, roles, {})
        assert team.run(playbook=None, config=served.config, model=FORCING).exit_code == 1
    assert ["spawn_agent" in json.dumps(body) for body in served.bodies] == [True] * len(settings)


def test_tokens_of_sub_agents_count_in_turn_and_run(tmp_path: Path) -> None:
    keys: Record = {"agents.enabled": True}
    with any_model(spawning) as served:
        team = TeamFolder(tmp_path, {"one": {"codex_config": keys}}, {})
        report = team.run(playbook=None, config=served.config, model="m")
    (turn,) = team.of_type("turn_ended")
    asked = len(served.bodies)
    assert any(is_sub_agents(body) for body in served.bodies)
    assert (turn["input_tokens"], turn["output_tokens"]) == (asked * INPUT_TOKENS, asked * OUTPUT_TOKENS)
    assert report.totals["input_tokens"] == asked * INPUT_TOKENS


ELICITATION = "mcpServer/elicitation/request"
PLAIN: Mapping[str, Record] = {"docs": {}}


def run_calling(
    tmp_path: Path, called: Sequence[tuple[str, str]], role: Record, servers: Mapping[str, Record] = PLAIN
) -> tuple[TeamFolder, RunReport]:
    """A run whose only role calls tools of its servers one after the other, and then answers."""

    def model(body: Body) -> Items:
        number = json.dumps(body["input"]).count('"function_call_output"')
        if number < len(called):
            server, tool = called[number]
            return call(tool, f"c{number}", f"mcp__{server}", word="cuckoo")
        return message(json.dumps({"summary": "fine"}))

    given = {name: {**ECHO_SERVER, **more} for name, more in servers.items()}
    team = TeamFolder(tmp_path, {"one": {"mcp_servers": given, **role}}, {})
    with any_model(model) as served:
        return team, team.run(playbook=None, config=served.config, model="m")


def calls(report: RunReport) -> list[tuple[str, str, str]]:
    """Server, tool and status of each, in order."""
    items = (report.folder / "one/turn_001/items_text.md").read_text()
    return re.findall(r"## MCP tool: (\w+)/(\w+) \(status: (\w+)\)", items)


SERVERS: dict[str, tuple[Record, str, str]] = {
    "unsaid": ({}, "completed", "failed"),
    "auto": ({"approval": "auto"}, "completed", "failed"),
    "always": ({"approval": "always"}, "completed", "completed"),
    "never": ({"approval": "never"}, "failed", "failed"),
    "mixed": ({"approval": "never", "tools": {"change": "always"}}, "failed", "completed"),
}
"""The keys of each, and how calls of its tools ``echo`` and ``change`` end."""


@pytest.mark.parametrize("policy", ["on-request", "never"])
def test_calls_follow_the_approval_of_their_server(tmp_path: Path, policy: str) -> None:
    """Whatever the role's own policy; after a declined call the turn continues."""
    ends = [(name, *end) for name, (_, *two) in SERVERS.items() for end in zip(("echo", "change"), two, strict=True)]
    called = [(server, tool) for server, tool, _ in ends]
    servers = {name: keys for name, (keys, *_) in SERVERS.items()}
    team, report = run_calling(tmp_path, called, {"approval_policy": policy}, servers)
    assert calls(report) == ends
    assert team.turns() == [("one", 1, "completed")]
    declined = [(each["method"], each["decision"], each["detail"]) for each in team.of_type("approval")]
    asks = [f'Allow the {server} MCP server to run tool "{tool}"?' for server, tool, end in ends if end == "failed"]
    assert declined == [(ELICITATION, "decline", question) for question in asks if policy != "never"]


def test_call_is_in_the_log_with_arguments_and_result(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, [("docs", "echo"), ("docs", "change")], {})
    found = [(e["tool"], e["server"], e["arguments"], e["status"], e["result"]) for e in team.of_type("mcp_call_ended")]
    word, error = '{"word": "cuckoo"}', '{"message": "user rejected MCP tool call"}'
    assert found == [("echo", "docs", word, "completed", "heard cuckoo"), ("change", "docs", word, "failed", error)]
    done = console("watch", report.run_id, "--plain", folder=tmp_path)
    assert re.search(
        r'one: MCP tool docs/echo {"word": "cuckoo"} completed in .*: heard cuckoo', done.stdout + done.stderr
    )


def test_question_of_a_server_is_declined(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, [("docs", "ask")], {})
    assert '{\\"action\\": \\"decline\\"}' in (report.folder / "one/turn_001/items_text.md").read_text()
    assert [(each["decision"], each["detail"]) for each in team.of_type("approval")] == [("decline", "Sure?")]
    assert team.turns() == [("one", 1, "completed")]


def test_question_of_a_starting_server_does_not_hang(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, [("docs", "echo")], {}, {"docs": {"args": [*ECHO_SERVER["args"], "first"]}})
    assert calls(report) == [("docs", "echo", "completed")]
    assert team.turns() == [("one", 1, "completed")]


def test_only_enabled_tools_are_offered(tmp_path: Path) -> None:
    _, report = run_calling(
        tmp_path, [("docs", "change")], {}, {"docs": {"approval": "always", "enabled_tools": ["echo"]}}
    )
    assert calls(report) == []
