"""MCP servers that a role names in ``mcp_servers``, on the real binary."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from codex_multi_role import RunReport
from tests.support.console import console
from tests.support.mcp_server import ECHO_SERVER
from tests.support.models import Body, Items, any_model, call, message
from tests.support.teams import Record, TeamFolder

ELICITATION = "mcpServer/elicitation/request"


def run_calling(
    tmp_path: Path, called: tuple[str, ...], role: Record, **server: object
) -> tuple[TeamFolder, RunReport]:
    """A run whose only role calls tools of a server one after the other, and then answers."""

    def model(body: Body) -> Items:
        number = json.dumps(body["input"]).count('"function_call_output"')
        if number < len(called):
            return call(called[number], f"c{number}", "mcp__docs", word="cuckoo")
        return message(json.dumps({"summary": "fine"}))

    team = TeamFolder(tmp_path, {"one": {"mcp_servers": {"docs": {**ECHO_SERVER, **server}}, **role}}, {})
    with any_model(model) as served:
        return team, team.run(playbook=None, config=served.config, model="m")


def calls(report: RunReport) -> dict[str, str]:
    items = (report.folder / "one/turn_001/items_text.md").read_text()
    return dict(re.findall(r"## MCP tool: docs/(\w+) \(status: (\w+)\)", items))


@pytest.mark.parametrize("policy", ["untrusted", "on-request", "never"])
@pytest.mark.parametrize(
    ("server", "echo", "change"),
    [
        ({}, "completed", "failed"),
        ({"approval": "auto"}, "completed", "failed"),
        ({"approval": "always"}, "completed", "completed"),
        ({"approval": "never"}, "failed", "failed"),
        ({"approval": "never", "tools": {"change": "always"}}, "failed", "completed"),
    ],
)
def test_calls_follow_the_approval_of_their_server(
    tmp_path: Path, policy: str, server: Record, echo: str, change: str
) -> None:
    """Whatever the role's own policy; after a declined call the turn continues."""
    team, report = run_calling(tmp_path, ("echo", "change"), {"approval_policy": policy}, **server)
    assert calls(report) == {"echo": echo, "change": change}
    assert team.turns() == [("one", 1, "completed")]
    declined = [(each["method"], each["decision"]) for each in team.of_type("approval")]
    asks = policy != "never"
    assert declined == [(ELICITATION, "decline")] * (asks * [echo, change].count("failed"))


def test_call_is_in_the_log_with_arguments_and_result(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, ("echo", "change"), {})
    found = [(e["tool"], e["server"], e["arguments"], e["status"], e["result"]) for e in team.of_type("mcp_call_ended")]
    word, error = '{"word": "cuckoo"}', '{"message": "user rejected MCP tool call"}'
    assert found == [("echo", "docs", word, "completed", "heard cuckoo"), ("change", "docs", word, "failed", error)]
    done = console("watch", report.run_id, "--plain", folder=tmp_path)
    assert re.search(
        r'one: MCP tool docs/echo {"word": "cuckoo"} completed in .*: heard cuckoo', done.stdout + done.stderr
    )


def test_declined_call_names_server_and_tool(tmp_path: Path) -> None:
    team, _ = run_calling(tmp_path, ("change",), {})
    [asked] = team.of_type("approval")
    assert asked["detail"] == 'Allow the docs MCP server to run tool "change"?'


def test_question_of_a_server_is_declined(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, ("ask",), {})
    assert '{\\"action\\": \\"decline\\"}' in (report.folder / "one/turn_001/items_text.md").read_text()
    assert [(each["decision"], each["detail"]) for each in team.of_type("approval")] == [("decline", "Sure?")]
    assert team.turns() == [("one", 1, "completed")]


def test_question_of_a_starting_server_does_not_hang(tmp_path: Path) -> None:
    team, report = run_calling(tmp_path, ("echo",), {}, args=[*ECHO_SERVER["args"], "first"])
    assert calls(report) == {"echo": "completed"}
    assert team.turns() == [("one", 1, "completed")]


def test_only_enabled_tools_are_offered(tmp_path: Path) -> None:
    _, report = run_calling(tmp_path, ("change",), {}, approval="always", enabled_tools=["echo"])
    assert calls(report) == {}
