"""Tools of roles: in a playbook, called directly, or installed as a distribution brings them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.checks.tools import ToolContext, ToolResult, find_tool
from codex_multi_role.workspace import Workspace
from tests.support import plugins
from tests.support.teams import Record, say

SHOUTING = """
from codex_multi_role.checks.tools import Tool, ToolResult

def _call(context, arguments):
    if arguments["text"] == "fail":
        raise RuntimeError("no voice")
    (context.folder / "shouted.txt").write_text(arguments["text"])
    return ToolResult(arguments["text"].upper())

SCHEMA = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
shout = Tool("shout", "Say it loud.", SCHEMA, _call)
"""
EDITOR: Record = {"behaviors": {"apply_files": True}, "prompt_flags": {"allow_write": True}}
"""The keys of a role that may change files by commands, and whose submitted files are applied."""


def calls(tool: str, arguments: object) -> Record:
    """A turn that calls a tool, and passes on its result."""
    return {"steps": [{"call": tool, "arguments": arguments}, say("{{ tool_outputs[0] }}")]}


def command(cmd: str, **more: object) -> Record:
    """A step of a turn: Codex runs a command. ``more``: further arguments, such as ``yield_time_ms``."""
    return {"call": "exec_command", "arguments": {"cmd": cmd, **more}}


def shell(cmd: str, **handoff: Any) -> Record:
    """A turn that runs a command and leaves a handoff with these fields."""
    return {"steps": [command(cmd), say(**handoff)]}


def call(tool: str, arguments: Mapping[str, Any], folder: Path, kept: Mapping[str, Any] | None = None) -> ToolResult:
    """Call the tool for the workspace ``folder``, whose ``runs`` is out of bounds."""
    context = ToolContext("one", Workspace(folder, (folder / "runs",)), folder, lambda *_: None, kept=kept or {})
    return find_tool(tool).call(context, arguments)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, names: Iterable[str], module: str = SHOUTING) -> None:
    """Install ``module``, with an entry point for each tool of ``names``."""
    plugins.install(folder, monkeypatch, "tools", names, module)
