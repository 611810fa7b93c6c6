"""The Responses API stream of one scripted answer: server-sent events, as plain objects. Pure.

Every model request gets exactly one output item, so one tool output comes back per tool call. Only the model's own web
searches, which need no output, come before a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from pydantic import JsonValue

from codex_multi_role.playbook.script import Fault, Usage
from codex_multi_role.playbook.selection import Message, ToolCall

Event = dict[str, JsonValue]

DEFAULT_DELTAS = 5
BROKEN_OFF_TEXT = "This answer breaks off. "


@dataclass(frozen=True)
class StreamIds:
    """Ids of one response; ``call`` must be the same whenever the same step is played, the others must be new."""

    response: str
    item: str
    call: str


def stream(answer: Message | ToolCall | Fault, usage: Usage, ids: StreamIds) -> Iterator[Event]:
    """All events of one answer. Those of a drop or a stall end where the connection falls silent."""
    if isinstance(answer, Fault) and answer.breaks_connection:
        return islice(_message(_endless(answer), usage, ids), answer.after_events)
    if isinstance(answer, Message):
        return _message(answer, usage, ids)
    if isinstance(answer, ToolCall):
        return _tool_call(answer, usage, ids)
    return _without_item(answer, usage, ids)


def encode(event: Event) -> bytes:
    """One server-sent event on the wire."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def http_error(fault: Fault) -> bytes:
    """The JSON body of an HTTP error in the API's format, unless the fault has its own."""
    default = {"error": {"message": fault.message, "type": fault.code, "code": fault.code, "param": None}}
    return json.dumps(default if fault.body is None else fault.body).encode()


def split(text: str, pieces: int) -> list[str]:
    """Split ``text`` into at most ``pieces`` non-empty parts of nearly equal length."""
    count = min(pieces, len(text))
    cuts = [index * len(text) // count for index in range(count + 1)] if count else []
    return [text[start:end] for start, end in pairwise(cuts)]


def _endless(fault: Fault) -> Message:
    return Message(BROKEN_OFF_TEXT * max(1, fault.after_events), max(1, fault.after_events))


def _message(message: Message, usage: Usage, ids: StreamIds) -> Iterator[Event]:
    pieces = DEFAULT_DELTAS if message.deltas is None else message.deltas
    item: Event = {"type": "message", "id": ids.item, "role": "assistant", "content": []}
    place = len(message.searches)
    yield _created(ids)
    for index, query in enumerate(message.searches):
        yield from _web_search(index, query, ids)
    yield {"type": "response.output_item.added", "output_index": place, "item": item}
    for piece in split(message.text, pieces):
        yield {
            "type": "response.output_text.delta", "item_id": ids.item, "output_index": place, "content_index": 0,
            "delta": piece,
        }  # fmt: skip
    whole: Event = item | {"content": [{"type": "output_text", "text": message.text, "annotations": []}]}
    yield {"type": "response.output_item.done", "output_index": place, "item": whole}
    yield _completed(usage, ids)


def _web_search(index: int, query: str, ids: StreamIds) -> Iterator[Event]:
    item: Event = {"type": "web_search_call", "id": f"{ids.item}_search_{index}", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": item}
    done: Event = item | {"status": "completed", "action": {"type": "search", "query": query}}
    yield {"type": "response.output_item.done", "output_index": index, "item": done}


def _tool_call(call: ToolCall, usage: Usage, ids: StreamIds) -> Iterator[Event]:
    item: Event = {
        "type": "function_call", "id": ids.item, "call_id": ids.call, "name": call.name, "arguments": call.arguments,
    }  # fmt: skip
    yield _created(ids)
    yield {"type": "response.output_item.added", "output_index": 0, "item": item | {"arguments": ""}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield _completed(usage, ids)


def _without_item(fault: Fault, usage: Usage, ids: StreamIds) -> Iterator[Event]:
    yield _created(ids)
    if fault.code is None:
        yield _completed(usage, ids)
        return
    error: Event = {"code": fault.code, "message": fault.message}
    yield {"type": "response.failed", "response": {"id": ids.response, "status": "failed", "error": error}}


def _created(ids: StreamIds) -> Event:
    return {"type": "response.created", "response": {"id": ids.response, "status": "in_progress"}}


def _completed(usage: Usage, ids: StreamIds) -> Event:
    tokens: Event = {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    response: Event = {"id": ids.response, "status": "completed", "usage": tokens}
    return {"type": "response.completed", "response": response}
