"""The tool ``calculator``: evaluate one expression in decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.tools.tool import Tool, ToolContext, ToolResult

LONGEST_EXPRESSION = 1_000

_SCHEMA = {
    "type": "object",
    "required": ["expression"],
    "additionalProperties": False,
    "properties": {
        "expression": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_EXPRESSION,
            "description": "For example: round(pi * 5**2, 2)",
        },
    },
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    from codex_multi_role.tools.arithmetic import calculate  # imported only for a calculation

    try:
        return ToolResult(calculate(str(arguments["expression"])))
    except ValueError as error:
        return ToolResult(str(error), success=False)


calculator = Tool(
    name="calculator",
    description=(
        "Work out one expression, exactly where decimals can say it: + - * / // % ** and parentheses; pi, e, tau; "
        "abs, min, max, round(x, digits) (halves away from zero), floor, ceil, sqrt, cbrt, hypot, exp, ln, "
        "log(x, base), log10, log2, factorial, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, degrees, "
        "radians. Angles are in radians. No variables, no other words."
    ),
    input_schema=_SCHEMA,
    call=_call,
)
