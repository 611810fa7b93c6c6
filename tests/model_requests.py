"""What reaches the model of a playbook run: the bodies of all requests, as Codex sent them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from codex_multi_role.playbook import handler
from codex_multi_role.playbook.request import CompactionRequest, NextStepRequest, read_request

Body = dict[str, Any]


@contextmanager
def model_requests() -> Iterator[list[Body]]:
    """Collect the requests that the playbook server of this process receives."""
    bodies: list[Body] = []

    def remember(raw: bytes) -> NextStepRequest | CompactionRequest:
        bodies.append(json.loads(raw))
        return read_request(raw)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(handler, "read_request", remember)
        yield bodies


def texts(body: Body, role: str = "") -> str:
    """All that the request's messages say, those of ``role`` only if it is given."""
    messages = [item for item in body["input"] if item.get("type") == "message" and role in ("", item["role"])]
    return "\n".join(part.get("text", "") for message in messages for part in message["content"])
