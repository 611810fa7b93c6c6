"""The tool ``validate_plan``: whether the latest plan can be followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.systems.plan_solve.plans import FEWEST_TASKS, MOST_TASKS, plan_problems
from codex_multi_role.tools.tool import Tool, ToolContext, ToolResult

_NUMBER = {"type": "integer", "minimum": 1, "maximum": 200}
_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "min_steps": {**_NUMBER, "description": f"The fewest tasks that will do, else {FEWEST_TASKS}."},
        "max_steps": {**_NUMBER, "description": f"The most tasks there may be, else {MOST_TASKS}."},
    },
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    fewest, most = int(arguments.get("min_steps", FEWEST_TASKS)), int(arguments.get("max_steps", MOST_TASKS))
    problems = plan_problems(context.kept.get("todos", []), fewest, most)
    if problems:
        return ToolResult("The plan is rejected: " + "; ".join(problems) + ". Write it anew.", success=False)
    return ToolResult("The plan can be followed.")


validate_plan = Tool(
    name="validate_plan",
    description=(
        "Judge the plan written last: it is rejected when it is empty, has too few or too many tasks, an id twice, "
        "or dependencies that are unknown or go round in a circle."
    ),
    input_schema=_SCHEMA,
    call=_call,
)
