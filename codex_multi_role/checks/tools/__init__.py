"""Tools that a role's model may call within its turn, one module each, enabled by the role's ``tools``.

Systems and plug-ins add more by entry point ``codex_multi_role.tools``: each loads a `Tool`.
"""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.registry import Registry

__all__ = ["TOOLS", "Tool", "ToolContext", "ToolResult", "find_tool", "tool_code", "tool_names"]

TOOLS = {
    "ask_user": "codex_multi_role.checks.tools.ask_user:ask_user",
    "terminate": "codex_multi_role.checks.tools.terminate:terminate",
}
_REGISTRY: Registry[Tool] = Registry("tool", "codex_multi_role.tools", TOOLS)


def tool_names() -> list[str]:
    """Sorted names of all tools, built in and installed."""
    return _REGISTRY.names()


def find_tool(name: str) -> Tool:
    """The tool called ``name``.

    Raises UsageError for an unknown name, and for an installed tool that does not load or is not a `Tool` of that name.
    """
    tool = _REGISTRY.find(name)
    if name not in TOOLS:
        _check_installed(name, tool)
    return tool


def tool_code(name: str) -> Path | None:
    """The file or folder with the code of the tool called ``name``, which `find_tool` found; None if it has none."""
    return _REGISTRY.code(name)


def _check_installed(name: str, tool: object) -> None:
    import jsonschema  # imported only for an installed tool

    hint = "fix or remove it"
    if not isinstance(tool, Tool) or tool.name != name:
        raise UsageError(f"the tool {name!r} is not a codex_multi_role.checks.tools.Tool of that name", hint)
    try:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    except jsonschema.SchemaError as error:
        raise UsageError(
            f"the input_schema of the tool {name!r} is not a JSON Schema: {error.message}", hint
        ) from error
