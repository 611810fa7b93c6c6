"""The tool ``write_todos``: write the plan as a list of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.systems.plan_solve.plans import TASKS_SCHEMA, with_defaults
from codex_multi_role.tools.tool import Tool, ToolContext, ToolResult

_SCHEMA = {
    "type": "object",
    "required": ["todos"],
    "additionalProperties": False,
    "properties": {"todos": TASKS_SCHEMA},
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    todos = with_defaults(arguments["todos"])
    lines = [f"{todo['id']} [{todo['status']}, {todo['priority']}] {todo['content']}{_after(todo)}" for todo in todos]
    return ToolResult("\n".join([f"The plan has {len(todos)} tasks now:", *lines]), keep={"todos": todos})


def _after(todo: Mapping[str, Any]) -> str:
    return f" (after {', '.join(todo['dependencies'])})" if todo["dependencies"] else ""


write_todos = Tool(
    name="write_todos",
    description="Write the whole plan, in place of the one before: every task, what to do and what it needs.",
    input_schema=_SCHEMA,
    call=_call,
)
