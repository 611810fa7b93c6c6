"""A child's output, message by message: whole lines, with consecutive deltas joined.

A model's answer arrives as one message for every few letters. Consecutive deltas of one item are joined, for at most
`HELD_SECONDS` and `HELD_CHARACTERS`: nothing is lost or reordered, and an answer in 200,000 pieces becomes a few
messages to read, log and store.

A command's output arrives the same way, up to 80 MB per command (measured). Nobody needs its text: it is a sign of
life, and the item of a finished command has 1 MB of it. Beyond `OUTPUT_CHARACTERS` in a turn it is only counted.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST_LINE = 64 * 1024 * 1024
HELD_SECONDS = 0.5
HELD_CHARACTERS = 16 * 1024
OUTPUT_CHARACTERS = 1_000_000
OUTPUT = "item/commandExecution/outputDelta"
_CHUNK_BYTES = 64 * 1024

Message = dict[str, Any]


class IncomingLine(NamedTuple):
    """A line without its end, and its message: None if it is not a JSON object, or nested too deeply to parse."""

    line: bytes
    message: Message | None


class Incoming:
    """Iterates over everything that arrives on the pipe ``descriptor`` until its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()  # waits: for more of a message, ended by HELD_SECONDS
        self._poll.register(descriptor, select.POLLIN)
        self._first: Message | None = None
        self._texts: list[str] = []
        self._left_out = 0
        self._output_room = OUTPUT_CHARACTERS
        self._room = 0
        self._until = 0.0

    def __iter__(self) -> Iterator[IncomingLine]:
        for line in self._lines():
            message = _parsed(line) if line else None
            if message is not None and _is_delta(message):
                yield from self._hold(message, message["params"].pop("delta"))
                continue
            yield from self._release()
            if message is not None and message.get("method") == "turn/started":
                self._output_room = OUTPUT_CHARACTERS
            if line is not None:
                yield IncomingLine(line, message)
        yield from self._release()

    def _hold(self, delta: Message, text: str) -> Iterator[IncomingLine]:
        """Keep ``text`` to be joined with later deltas; release it at the limits, or when another item follows."""
        if self._first is not None and not _is_same_item(self._first, delta):
            yield from self._release()
        if self._first is None:
            self._first, self._room, self._until = delta, HELD_CHARACTERS, time.monotonic() + HELD_SECONDS
        if delta["method"] == OUTPUT:
            text = self._shortened(text)
        if text:
            self._texts.append(text)
        self._room -= len(text)
        if self._room <= 0 or time.monotonic() >= self._until:
            yield from self._release()

    def _shortened(self, output: str) -> str:
        """The part of a command's ``output`` that fits into this turn's limit."""
        kept = output[: self._output_room]
        self._output_room -= len(kept)
        self._left_out += len(output) - len(kept)
        return kept

    def _release(self) -> Iterator[IncomingLine]:
        delta, texts = self._first, self._texts
        if self._left_out:
            texts.append(f"[{self._left_out} characters left out]")
        self._first, self._texts, self._left_out = None, [], 0
        if delta is not None:
            delta["params"]["delta"] = "".join(texts)
            yield IncomingLine(json.dumps(delta, ensure_ascii=False).encode("utf-8", "replace"), delta)

    def _lines(self) -> Iterator[bytes | None]:
        """Lines without their ends, the last one possibly truncated; None once held deltas have waited long enough."""
        partial = bytearray()
        while True:  # waits: for the child's output, ended by its end, which has deadlines
            if self._first is not None and not self._poll.poll(HELD_SECONDS * 1000):
                yield None
            # waits: for the child's output, ended by its end, which has deadlines
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                yield bytes(partial) + end
                partial.clear()
            partial += rest
            if partial and (not chunk or len(partial) > LONGEST_LINE):
                yield bytes(partial)
                partial.clear()
            if not chunk:
                return


def _parsed(line: bytes) -> Message | None:
    try:
        message = json.loads(str(line, "utf-8"))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _is_delta(message: Message) -> bool:
    method, params = message.get("method"), message.get("params")
    is_one = isinstance(method, str) and method.startswith("item/") and method.lower().endswith("delta")
    return is_one and "id" not in message and isinstance(params, dict) and isinstance(params.get("delta"), str)


def _is_same_item(first: Message, second: Message) -> bool:
    """Compare deltas without their texts; their times are outside ``params`` and may differ."""
    return bool(first["method"] == second["method"] and first["params"] == second["params"])
