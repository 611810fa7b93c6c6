"""The tool ``ask_user``: ask a person a question within the turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult

NOBODY = "Nobody is available to answer. Continue with your best assumption, and say in your answer which one you made."
NO_WORDS = "The person gave no answer. Continue with your best assumption, and say in your answer which one you made."
REJECTED = "The person rejected this: "

_SCHEMA = {
    "type": "object",
    "required": ["question"],
    "additionalProperties": False,
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "description": "One question, with everything needed to decide it.",
        },
        "options": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "maxItems": 20,
            "description": "Suggested answers, if there are only a few. The person may give another one.",
        },
    },
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    options = "\n".join(f"- {option}" for option in arguments.get("options", ()))
    answer = context.ask_person(str(arguments["question"]), options)
    if answer is None:
        return ToolResult(NOBODY)
    if not answer.comment:
        return ToolResult(NO_WORDS)
    return ToolResult(answer.comment if answer.approved else f"{REJECTED}{answer.comment}")


ask_user = Tool(
    name="ask_user",
    description=(
        "Ask a person one question and get the answer as text. Use it only for a decision that is not yours, or for a "
        "fact that you cannot find out yourself. If nobody is available, the call returns at once."
    ),
    input_schema=_SCHEMA,
    call=_call,
)
