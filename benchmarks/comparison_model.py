"""The model of `compare.py`: a loopback server that gives every driver the same answer after the same time.

It speaks the Responses API and chat completions, streamed or in one piece, and asks for no metadata: Codex, its SDK
and the peers all use it through the setting that they document for a base URL.
"""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import floor

from codex_multi_role.playbook.loopback import END_OF_STREAM, JSON, LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.responses import StreamIds, encode, stream
from codex_multi_role.playbook.script import Usage
from codex_multi_role.playbook.selection import Message

ANSWER = json.dumps(floor.SAID)
TOKENS = 100
CHAT = "/v1/chat/completions"
PATHS = ("/v1/responses", CHAT)
CREATED = 1_700_000_000


class ComparisonModel(LoopbackServer):
    """``latency_seconds`` before each answer; ``requests`` and ``received_bytes`` of bodies since `restart`."""

    def __init__(self) -> None:
        super().__init__("comparison", ComparisonHandler)
        self._lock = threading.Lock()
        self.restart(0.0)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    def restart(self, latency_seconds: float) -> None:
        with self._lock:
            self.latency_seconds, self.requests, self.received_bytes = latency_seconds, 0, 0

    def count(self, body: bytes) -> None:
        with self._lock:
            self.requests += 1
            self.received_bytes += len(body)


class ComparisonHandler(LoopbackHandler):
    def serves(self, path: str) -> bool:
        return path in PATHS

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        if not self.admit() or (body := self.body()) is None:
            return
        model = cast(ComparisonModel, self.server)
        model.count(body)
        streamed = json.loads(body).get("stream", False)
        if model.stopping.wait(model.latency_seconds):
            self.close_connection = True
        elif streamed:
            self._stream(_chat_chunks() if self.path.startswith(CHAT) else _response_events())
        else:
            whole = _chat_completion() if self.path.startswith(CHAT) else _response()
            self.answer(HTTPStatus.OK, json.dumps(whole).encode(), {"Content-Type": JSON})

    def _stream(self, pieces: list[bytes]) -> None:
        self.begin_stream()
        for piece in pieces:
            self.chunk(piece)
        self.chunk(END_OF_STREAM)


def _response_events() -> list[bytes]:
    fresh = uuid4().hex
    ids = StreamIds(f"resp_{fresh}", f"msg_{fresh}", f"call_{fresh}")
    return [
        encode(event) for event in stream(Message(ANSWER, 1), Usage(input_tokens=TOKENS, output_tokens=TOKENS), ids)
    ]


def _response() -> dict[str, Any]:
    fresh = uuid4().hex
    content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    message = {"type": "message", "id": f"msg_{fresh}", "role": "assistant", "status": "completed", "content": content}
    usage = {
        "input_tokens": TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2 * TOKENS,
    }
    settings = {"model": "bench", "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    state = {"id": f"resp_{fresh}", "object": "response", "created_at": CREATED, "status": "completed"}
    return {**state, **settings, "output": [message], "usage": usage}


def _chat_completion() -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
    return _chat("chat.completion", choice) | {"usage": _chat_usage()}


def _chat_chunks() -> list[bytes]:
    text = {"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [_chat("chat.completion.chunk", text), _chat("chat.completion.chunk", end) | {"usage": _chat_usage()}]
    return [*(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks), b"data: [DONE]\n\n"]


def _chat(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    fresh = f"chatcmpl-{uuid4().hex}"
    return {"id": fresh, "object": kind, "created": CREATED, "model": "bench", "choices": [choice]}


def _chat_usage() -> dict[str, int]:
    return {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS}
