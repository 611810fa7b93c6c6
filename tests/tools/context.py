"""A tool's context, as a turn would lend it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.tools import ToolContext, ToolResult, find_tool
from codex_multi_role.workspace import Workspace


def call(tool: str, arguments: Mapping[str, Any], folder: Path, kept: Mapping[str, Any] | None = None) -> ToolResult:
    """Call the tool for the workspace ``folder``, whose ``runs`` is out of bounds."""
    context = ToolContext("one", Workspace(folder, (folder / "runs",)), folder, lambda *_: None, kept=kept or {})
    return find_tool(tool).call(context, arguments)
