"""MCP servers that a role names in ``mcp_servers``, on the real binary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codex_multi_role import RunReport
from tests.support.console import console
from tests.support.mcp_server import ECHO_SERVER
from tests.support.models import Body, Items, any_model, call, message
from tests.support.teams import Record, TeamFolder

pytestmark = pytest.mark.real

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
