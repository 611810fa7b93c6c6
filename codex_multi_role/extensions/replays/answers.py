"""A model's answer on the wire and in a recording: server-sent events, reduced to what a replay needs, and back. Pure.

Stored are the items of the answer, the usage, how the stream ended, and an error's text. The pieces of a text, the ids
of the stream and encrypted reasoning are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from codex_multi_role.playbook.responses import DEFAULT_DELTAS, Event, split

Fields = dict[str, Any]

LONGEST_TEXT = 1_000_000
"""Maximum length of a stored answer that is not a stream, such as an error, in characters."""
ENDS = {"response.completed": "completed", "response.failed": "failed", "response.incomplete": "incomplete"}
BROKEN, TEXT = "broken", "text"
KEPT_OF_RESPONSE = ("status", "usage", "error", "incomplete_details", "end_turn")
KEPT_HEADERS = ("content-type", "retry-after")


def reduced(status: int, headers: Mapping[str, str], raw: bytes, *, whole: bool) -> Fields:
    """The part of an answer to store. ``headers``: names in lower case; ``whole``: whether the answer is complete.

    Raises `RecursionError` for JSON that is nested too deeply.
    """
    text = raw.decode("utf-8", "replace")
    events = list(_events(text)) if status == 200 else []
    if status == 200 and (events or not whole):
        return {"status": status, **_stream(events)}
    details = {name: headers[name] for name in KEPT_HEADERS if name in headers}
    return {"status": status, "end": TEXT if whole else BROKEN, "headers": details, "text": text[:LONGEST_TEXT]}


def _events(text: str) -> Iterator[Fields]:
    for block in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        try:
            event = json.loads(data) if data else None
        except ValueError:
            continue  # the last one, of a stream that broke off
        if isinstance(event, dict) and isinstance(event.get("type"), str):
            yield event


def _stream(events: list[Fields]) -> Fields:
    last = next((event for event in events if event["type"] in ENDS), None)
    items, unfinished = _items(events)
    if last is None:
        return {"end": BROKEN, "items": items, "text": unfinished}
    response = last.get("response")
    details = response if isinstance(response, dict) else {}
    kept = {name: details[name] for name in KEPT_OF_RESPONSE if details.get(name) is not None}
    return {"end": ENDS[last["type"]], "items": items, "response": kept}


def _items(events: list[Fields]) -> tuple[list[Fields], str]:
    """The complete items, and the text of an incomplete one after them."""
    items: list[Fields] = []
    deltas: list[str] = []
    for event in events:
        if event["type"] == "response.output_text.delta":
            deltas.append(str(event.get("delta", "")))
        elif event["type"] == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            items.append(_readable(item))
            deltas.clear()
    return items, "".join(deltas)


def _readable(item: Fields) -> Fields:
    if item.get("type") == "reasoning":
        return {name: value for name, value in item.items() if name != "encrypted_content"}
    return {**item, "encrypted_content": "recorded"} if "encrypted_content" in item else item


def events_of(answer: Fields) -> Iterator[Event]:
    """The stream of a recorded answer; one that broke off has no end."""
    response: Fields = {"id": f"resp_{uuid4().hex}", "status": "in_progress"}
    yield {"type": "response.created", "response": response}
    for index, item in enumerate(answer.get("items", ())):
        yield from _item(index, item)
    if answer["end"] == BROKEN:
        yield from _unfinished(len(answer.get("items", ())), str(answer.get("text", "")))
        return
    kind = next(kind for kind, end in ENDS.items() if end == answer["end"])
    yield {"type": kind, "response": {**response, "status": answer["end"], **answer.get("response", {})}}


def _item(index: int, item: Fields) -> Iterator[Event]:
    if item.get("type") == "message":
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
        yield from _deltas(index, item, _text(item))
    else:
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text(message: Fields) -> str:
    """The text to stream in pieces; empty for a message that is not only text."""
    try:
        return "".join(str(part["text"]) for part in message["content"])
    except (LookupError, TypeError):
        return ""


def _unfinished(index: int, text: str) -> Iterator[Event]:
    if text:
        item: Fields = {"type": "message", "id": f"msg_{uuid4().hex}", "role": "assistant", "content": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield from _deltas(index, item, text)


def _deltas(index: int, item: Fields, text: str) -> Iterator[Event]:
    place = {"item_id": item.get("id", ""), "output_index": index, "content_index": 0}
    for piece in split(text, DEFAULT_DELTAS):
        yield {"type": "response.output_text.delta", **place, "delta": piece}
