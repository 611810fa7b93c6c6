"""The tools ``write_todos`` and ``validate_plan``: write the plan as a list of tasks, and judge the latest one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.extensions.plan_solve.plan import (
    FEWEST_TASKS,
    MOST_TASKS,
    TASKS_SCHEMA,
    plan_problems,
    with_defaults,
)

_TODOS_SCHEMA = {
    "type": "object",
    "required": ["todos"],
    "additionalProperties": False,
    "properties": {"todos": TASKS_SCHEMA},
}


def _write(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    todos = with_defaults(arguments["todos"])
    lines = [f"{todo['id']} [{todo['status']}, {todo['priority']}] {todo['content']}{_after(todo)}" for todo in todos]
    return ToolResult("\n".join([f"The plan has {len(todos)} tasks now:", *lines]), keep={"todos": todos})


def _after(todo: Mapping[str, Any]) -> str:
    return f" (after {', '.join(todo['dependencies'])})" if todo["dependencies"] else ""


write_todos = Tool(
    name="write_todos",
    description="Write the whole plan and replace the previous one: every task, what to do and what it needs.",
    input_schema=_TODOS_SCHEMA,
    call=_write,
)


_NUMBER = {"type": "integer", "minimum": 1, "maximum": 200}
_LIMITS_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "min_steps": {**_NUMBER, "description": f"Minimum number of tasks; default {FEWEST_TASKS}."},
        "max_steps": {**_NUMBER, "description": f"Maximum number of tasks; default {MOST_TASKS}."},
    },
}


def _validate(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    fewest, most = int(arguments.get("min_steps", FEWEST_TASKS)), int(arguments.get("max_steps", MOST_TASKS))
    problems = plan_problems(context.kept.get("todos", []), fewest, most)
    if problems:
        return ToolResult("The plan is rejected: " + "; ".join(problems) + ". Write it again.", success=False)
    return ToolResult("The plan can be followed.")


validate_plan = Tool(
    name="validate_plan",
    description=(
        "Check the latest plan. It is rejected if it is empty, has too few or too many tasks, duplicate ids, "
        "or unknown or circular dependencies."
    ),
    input_schema=_LIMITS_SCHEMA,
    call=_validate,
)
