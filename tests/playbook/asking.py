"""Requests as Codex sends them, cut down to what the playbook server reads."""

from __future__ import annotations

import json
from typing import Any

from codex_multi_role.playbook.request import AnswerKey, NextStepRequest, call_id, read_request

PLANNER = AnswerKey("planner", 1, 0, 1)
TURN_ID = "01a1fb77-c664-7b03-a357-18033a344f6a"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def tool_output(step: int, output: Any, turn_id: str = TURN_ID) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id(turn_id, step), "output": output}


def body(*items: dict[str, Any], ask: AnswerKey | None = PLANNER, **metadata: object) -> bytes:
    named = {f"multi_role_{key}": str(value) for key, value in ask._asdict().items()} if ask else {}
    turn = json.dumps({"turn_id": TURN_ID, "request_kind": "turn"} | named | metadata)
    return json.dumps({"input": items, "client_metadata": {"x-codex-turn-metadata": turn}}).encode()


def asked(prompt: str = "do it", ask: AnswerKey = PLANNER, outputs: tuple[str, ...] = ()) -> NextStepRequest:
    items = [user(prompt), *(tool_output(step, output) for step, output in enumerate(outputs))]
    request = read_request(body(*items, ask=ask))
    assert isinstance(request, NextStepRequest)
    return request
