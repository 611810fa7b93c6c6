"""Lines that Codex does not send: broken ones, another thread's, and what a later version of it might send."""

from __future__ import annotations

import json
import random
from typing import Any

Message = dict[str, Any]

GARBAGE = (
    b"not json",
    b'{"id": 1, "method": ',
    b"{not json}",
    b"[]",
    b"null",
    b"42",
    b"\xff\xfe\x00\x80",
    b'{"text": "\xff"}',
    b"{}",
    b"[" * 100_000,
    b'{"id": 1.5, "result": null}',
    b'{"id": [1], "result": []}',
    b'{"id": null, "error": "broken"}',
    b'{"method": 7, "params": 7}',
    b'{"method": ["turn/completed"], "params": []}',
    b'{"method": "item/completed", "params": {"item": null}}',
    b'{"method": "item/started", "params": {"item": "text"}}',
    b'{"method": "item/agentMessage/delta", "params": {"delta": null}}',
    b'{"method": "thread/tokenUsage/updated", "params": {"tokenUsage": {"total": null, "last": null}}}',
    b'{"method": "turn/completed"}',
    b'{"method": "turn/completed", "params": {"turn": "gone"}}',
)
NEW_KEYS: Message = {"future": {"of": ["things"], "count": 1}, "experimental": None}
OWN_ID = "invented-"
OTHER = "00000000-0000-7000-8000-000000000000"


def garbage(chance: random.Random) -> bytes:
    return chance.choice(GARBAGE) + b"\n"


def unknown_notification(chance: random.Random) -> bytes:
    return line({"method": f"future/{chance.choice(['thing', 'item'])}/updated", "params": NEW_KEYS})


def unknown_request(chance: random.Random, number: int) -> bytes:
    """A server request of an unknown method; its id is text, as a JSON-RPC id may be."""
    params = chance.choice([NEW_KEYS, {}, {"threadId": OTHER, "turnId": OTHER}])
    return line({"id": f"{OWN_ID}{number}", "method": "future/thing/request", "params": params})


def stranger(chance: random.Random) -> bytes:
    """An answer to a request that was never sent."""
    number = chance.choice([987_654, -1, 0, "1", None])
    body: Message = chance.choice([{"result": {}}, {"error": {"code": -32600, "message": "no such request"}}])
    return line({"id": number, **body})


def foreign(message: Message) -> bytes | None:
    """The same notification, of another turn on another thread; None where it names no turn.

    Where a turn begins, another one ends.
    """
    params = message.get("params")
    if "id" in message or not isinstance(params, dict) or "threadId" not in params:
        return None
    other = {**params, "threadId": OTHER}
    if "turnId" in params:
        other["turnId"] = OTHER
    elif isinstance(params.get("turn"), dict):
        other["turn"] = {**params["turn"], "id": OTHER}
        if message.get("method") == "turn/started":
            return line(
                {"method": "turn/completed", "params": {**other, "turn": {**other["turn"], "status": "completed"}}}
            )
    else:
        return None
    return line({**message, "params": other})


def newer(message: Message, chance: random.Random) -> list[Message]:
    """The message as a later Codex might send it: with more keys, with unknown words, after a new kind of item."""
    params = message.get("params")
    if not isinstance(params, dict):
        return [{**message, **NEW_KEYS}]
    item = params.get("item")
    more = {**message, "params": {**params, **NEW_KEYS}}
    if not isinstance(item, dict) or "id" in message:
        return [more]
    if chance.random() < 0.5:
        invented = {"id": f"future-{chance.random()}", "type": "futureThing", "status": "pondering", **NEW_KEYS}
        return [{**message, "params": {**params, "item": invented}}, message]
    changed = {**item, **NEW_KEYS, **({"status": "pondering"} if "status" in item else {})}
    return [{**more, "params": {**more["params"], "item": changed}}]


def line(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"
