from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.checks.tools import Tool, find_tool, tool_names
from codex_multi_role.checks.tools.ask_user import ask_user
from codex_multi_role.errors import UsageError
from tests.support.tools import SHOUTING, install


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"""{SHOUTING}
other_name = shout
bare = print
wrong = Tool("wrong", "", {{"type": "objekt"}}, _call)
"""
    names = ("shout", "other_name", "bare", "wrong", "missing", "ask_user")
    install(tmp_path, monkeypatch, names, module)


def test_built_in_tool_wins_over_an_installed_one(installed: None) -> None:
    assert find_tool("ask_user") is ask_user


@pytest.mark.parametrize("name", tool_names())
def test_every_tool_goes_by_its_own_name(name: str) -> None:
    assert find_tool(name).name == name


def test_installed_tool_is_found(installed: None) -> None:
    assert find_tool("shout").description == "Say it loud."
    assert "shout" in tool_names()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ask_usr", 'unknown tool "ask_usr"; did you mean "ask_user"'),
        ("missing", r"the tool 'missing' \(extra_tools:missing\) does not load"),
        ("bare", "'bare' is not a codex_multi_role.checks.tools.Tool of that name"),
        ("other_name", "'other_name' is not a codex_multi_role.checks.tools.Tool of that name"),
        ("wrong", "the input_schema of the tool 'wrong' is not a JSON Schema: 'objekt'"),
    ],
)
def test_what_cannot_be_offered_is_named(installed: None, name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        find_tool(name)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "mcp__a", "a" * 65])
def test_name_that_codex_refuses_is_refused_here(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a tool's name"):
        Tool(name, "", {}, ask_user.call)
