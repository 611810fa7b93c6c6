"""The tool ``terminate``: the role reports that its work is over, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult

TERMINATED, FAILURE = "terminated", "failure"
SUMMARY_WANTED = "Now give the final summary: answer with the JSON object that your task asks for, and nothing else."

_SCHEMA = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["success", FAILURE]},
        "reason": {
            "type": "string",
            "maxLength": 4_000,
            "description": "Why it failed, or a short summary of the result.",
        },
    },
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    ended = {"status": arguments["status"], "reason": str(arguments.get("reason", ""))}
    return ToolResult(SUMMARY_WANTED, keep={TERMINATED: ended})


terminate = Tool(
    name="terminate",
    description="Report that your task has ended: success, or failure with the reason. Then give the final summary.",
    input_schema=_SCHEMA,
    call=_call,
    pure=True,
)
