"""Models that tests answer for, and requests to a model: built as Codex sends them, or collected from a run.

`any_model` answers whoever asks, unlike a playbook: for sub-agents, whose requests name no role.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from codex_multi_role.playbook.loopback import LoopbackHandler, LoopbackServer
from codex_multi_role.playbook.request import AnswerKey, CompactionRequest, NextStepRequest, call_id, read_request

Body = dict[str, Any]
Items = list[dict[str, Any]]
INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
PLANNER = AnswerKey("planner", 1, 0, 1)
TURN_ID = "01a1fb77-c664-7b03-a357-18033a344f6a"


def message(text: str) -> Items:
    """Output items: the model says ``text``."""
    return [{"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]}]


def call(name: str, call_id: str, namespace: str = "", **arguments: object) -> Items:
    """Output items: the model calls a tool."""
    more = {"namespace": namespace} if namespace else {}
    item = {"type": "function_call", "id": f"f{call_id}", "call_id": call_id, "name": name, **more}
    return [{**item, "arguments": json.dumps(arguments)}]


def failing(code: str) -> Items:
    """Output items: the model reports an error instead of an answer."""
    return [{"type": "error", "code": code, "message": "this error was requested"}]


BREAKING: Items = [{"type": "break"}]
"""Output items: the answer breaks off."""


def with_compactions(answer: Callable[[Body], Items]) -> Callable[[Body], Items]:
    """``answer``, but the summary that Codex asks a provider named OpenAI for is none of its answers."""
    summary: Items = [{"type": "compaction", "id": "s", "encrypted_content": "a summary"}]
    return lambda body: summary if body["input"][-1]["type"] == "compaction_trigger" else answer(body)


def equal_usage(_: int) -> Body:
    total = INPUT_TOKENS + OUTPUT_TOKENS
    return {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, "total_tokens": total}


@dataclass
class AnyModel:
    """``answer`` gives the output items for a request; ``spent``: the usage of each answer.

    ``headers``: those of each answer, besides the usual ones.
    """

    base_url: str
    bodies: list[Body] = field(default_factory=list)
    spent: list[Body] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> tuple[str, ...]:
        """The ``-c`` settings that lead to it."""
        table = f'{{name="any", base_url="{self.base_url}", wire_api="responses"}}'
        return ('model_provider="any"', f"model_providers.any={table}")


@contextmanager
def any_model(answer: Callable[[Body], Items], usage: Callable[[int], Body | None] = equal_usage) -> Iterator[AnyModel]:
    """A model on the loopback; ``answer`` gives the output items for the body of each request.

    ``usage``: the tokens of the answer with that number, as the provider reports them; None if it does not.
    """

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
            asked = json.loads(self.body() or b"")
            model.bodies.append(asked)
            events = list(_events(answer(asked), f"r{len(model.bodies)}", usage(len(model.spent))))
            reports = [each["response"]["usage"] for each in events if each["type"] == "response.completed"]
            model.spent += [each for each in reports if each is not None]
            data = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
            self.answer(200, data.encode(), {"Content-Type": "text/event-stream", **model.headers})

    with LoopbackServer("any model", Handler) as server:
        model = AnyModel(f"{server.address}/v1")
        yield model


def _events(items: Items, response: str, usage: Body | None) -> Iterator[Body]:
    yield {"type": "response.created", "response": {"id": response}}
    if items[0]["type"] == "error":
        yield {"type": "response.failed", "response": {"id": response, "error": items[0]}}
        return
    if items == BREAKING:
        return
    for index, item in enumerate(items):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {"id": response, "usage": usage}}


@contextmanager
def model_requests() -> Iterator[list[Body]]:
    """Collect the requests that the playbook server of this process receives."""
    bodies: list[Body] = []

    def remember(raw: bytes) -> NextStepRequest | CompactionRequest:
        bodies.append(json.loads(raw))
        return read_request(raw)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("codex_multi_role.playbook.playbook_server.read_request", remember)
        yield bodies


def texts(body: Body, role: str = "") -> str:
    """All that the request's messages say, those of ``role`` only if it is given."""
    messages = [item for item in body["input"] if item.get("type") == "message" and role in ("", item["role"])]
    return "\n".join(part.get("text", "") for message in messages for part in message["content"])


def user(text: str) -> dict[str, Any]:
    """An input item: the user says ``text``."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def tool_output(step: int, output: Any, turn_id: str = TURN_ID) -> dict[str, Any]:
    """An input item: what the tool call of this step returned."""
    return {"type": "function_call_output", "call_id": call_id(turn_id, step), "output": output}


def body(*items: dict[str, Any], ask: AnswerKey | None = PLANNER, **metadata: object) -> bytes:
    """The body of a request for the answer ``ask`` (none: of nobody); ``metadata`` is added to that of its turn."""
    named = {f"multi_role_{key}": str(value) for key, value in ask._asdict().items()} if ask else {}
    turn = json.dumps({"turn_id": TURN_ID, "request_kind": "turn"} | named | metadata)
    return json.dumps({"input": items, "client_metadata": {"x-codex-turn-metadata": turn}}).encode()


def asked(prompt: str = "do it", ask: AnswerKey = PLANNER, outputs: tuple[str, ...] = ()) -> NextStepRequest:
    """A request as the playbook reads it, after the tool calls of ``outputs``."""
    items = [user(prompt), *(tool_output(step, output) for step, output in enumerate(outputs))]
    request = read_request(body(*items, ask=ask))
    assert isinstance(request, NextStepRequest)
    return request
