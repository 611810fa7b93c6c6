"""Tools: what a role's model may call within its turn, one module each, offered by the role's ``tools``.

Others come by entry point ``codex_multi_role.tools``: each loads a `Tool`.
"""

from __future__ import annotations

from codex_multi_role.errors import UsageError
from codex_multi_role.registry import Registry
from codex_multi_role.tools.ask_user import ask_user
from codex_multi_role.tools.base import Ask, Tool, ToolContext, ToolResult
from codex_multi_role.tools.calculator import calculator
from codex_multi_role.tools.knowledge_lookup import knowledge_lookup
from codex_multi_role.tools.terminate import terminate
from codex_multi_role.tools.validate_plan import validate_plan
from codex_multi_role.tools.write_todos import write_todos

__all__ = ["TOOLS", "Ask", "Tool", "ToolContext", "ToolResult", "find_tool", "tool_names"]

BUILT_IN = (ask_user, calculator, knowledge_lookup, write_todos, validate_plan, terminate)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in BUILT_IN}
_REGISTRY = Registry("tool", "codex_multi_role.tools", TOOLS)


def tool_names() -> list[str]:
    """The names of all tools there are, built in and installed, sorted."""
    return _REGISTRY.names()


def find_tool(name: str) -> Tool:
    """The tool called ``name``.

    Raises UsageError for a name that no tool has, and for an installed one that does not load or is no such tool.
    """
    tool = _REGISTRY.find(name)
    if name not in TOOLS:
        _check_installed(name, tool)
    return tool


def _check_installed(name: str, tool: object) -> None:
    from jsonschema import Draft202012Validator  # only an installed tool pays for this import
    from jsonschema.exceptions import SchemaError

    hint = "mend or remove it"
    if not isinstance(tool, Tool) or tool.name != name:
        raise UsageError(f"the tool {name!r} is not a codex_multi_role.tools.Tool of that name", hint)
    try:
        Draft202012Validator.check_schema(tool.input_schema)
    except SchemaError as error:
        raise UsageError(
            f"the input_schema of the tool {name!r} is not a JSON Schema: {error.message}", hint
        ) from error
