"""An app-server within the test's process, for runs whose promise is ours alone: it answers, and starts nothing.

It takes the place of the child process below `AppServerTransport`, so that all above it is what a run really does: the
fleet, turns, budgets, journal, events and files. The answers come from the playbook, over HTTP as for Codex, or from a
function of the test. What a model may do with a computer is not here: a play that runs a command fails the turn.
``tests/codex/test_scripted_codex`` holds it against the real binary.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from codex_multi_role.codex.child import Launch

Json = dict[str, Any]
PIDS = itertools.count(1 << 23)
"""No process can have one of these."""
LONGEST_SECONDS = 60.0
OF_OPENING = {"threadId", "lastTurnId", "excludeTurns", "experimentalRawEvents", "dynamicTools"}
"""Keys of the request that opens a thread which are no settings that it keeps."""
PROVIDER = re.compile(r'"base_url" = "([^"]+)"')
MODEL = re.compile(r'model="([^"]+)"')
USAGE_LIMIT = "You\u2019ve hit your usage limit. Try again later."
COUNTS = {"totalTokens": "total_tokens", "inputTokens": "input_tokens", "outputTokens": "output_tokens"}
UNKNOWN_TOOLS: list[str] = []
"""Those that plays called: a test that only sees that nothing was changed must not pass because of them."""


@pytest.fixture
def real_codex() -> None:
    """For a test of a module whose others use `scripted_codex`: it runs the real binary."""


@pytest.fixture
def scripted_codex(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs of this process start no Codex process, unless the test asks for the `real_codex`, is a sample or long."""
    marks = {mark.name for mark in request.node.iter_markers()}
    is_real = "real_codex" in request.fixturenames or marks & {"sample", "long"}
    UNKNOWN_TOOLS.clear()
    with nullcontext() if is_real else codex_replaced():
        yield
    assert not UNKNOWN_TOOLS, f"the scripted Codex has no tool {UNKNOWN_TOOLS[0]}: this test needs the real_codex"


@contextmanager
def codex_replaced(answer: Answer | None = None) -> Iterator[None]:
    """Within the block, runs of this process start no Codex process and no guard. ``answer``: instead of a provider."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codex_multi_role.codex.transport.Child", partial(ScriptedChild, answer=answer))
        patch.setattr("codex_multi_role.lifecycle.session.guarded", lambda _: nullcontext(0))
        patch.setattr("codex_multi_role.codex.warm_home.WarmHomes.made_meanwhile", lambda _: nullcontext())
        patch.setattr("codex_multi_role.codex.warm_home.WarmHomes.fill", lambda _, home: home.mkdir(exist_ok=True))
        yield


class TurnFailed(Exception):
    """``info``: the protocol's ``codexErrorInfo``."""

    def __init__(self, message: str, info: object) -> None:
        super().__init__(message)
        self.info = info


@dataclass
class Thread:
    """``items``: the conversation, as the model gets it; ``ends``: its length after each turn.

    ``is_new``: started by this process. ``settings``: what it was opened with, and what turns changed since.
    """

    id: str
    model: str
    tools: list[str]
    items: list[Json] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    is_new: bool = True
    settings: Json = field(default_factory=dict)

    def save(self, home: Path) -> None:
        file = rollout(home, self.id)
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"tools": self.tools, "items": self.items, "ends": self.ends, "totals": self.totals}
        file.write_text(json.dumps(kept))

    def fork(self, last_turn: str) -> Thread:
        count = self.ends[last_turn]
        ends = {turn: end for turn, end in self.ends.items() if end <= count}
        return Thread(str(uuid4()), self.model, self.tools, self.items[:count], ends, dict(self.totals), is_new=False)


def rollout(home: Path, thread_id: str) -> Path:
    return home / "sessions" / f"rollout-{thread_id}.jsonl"


@dataclass
class Turn:
    """``shown``: all that it shows the model besides the conversation, the settings of the process included."""

    id: str
    thread: Thread
    metadata: Json
    prompt: str
    shown: Json
    interrupted: threading.Event = field(default_factory=threading.Event)
    is_over: bool = False


Answer = Callable[[Turn], Iterable[Json]]
"""The items of the model's answer; those of the type ``commandExecution`` only report that it ran a command."""


class ScriptedChild:
    """The contract of `codex_multi_role.codex.child.Child`."""

    def __init__(self, launch: Launch, redact: Callable[[str], str], answer: Answer | None) -> None:
        self.pid = next(PIDS)
        self._model_answer, self._argv = answer, launch.argv
        self._home = Path(launch.environment["CODEX_HOME"])
        settings = "\n".join(launch.argv)
        (self._provider,) = PROVIDER.findall(settings)[-1:]
        self._model = ["its own", *MODEL.findall(settings)][-1]
        self._threads: dict[str, Thread] = {}
        self._turns: dict[str, Turn] = {}
        self._asked: dict[int, Future[Json]] = {}
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._reader: threading.Thread | None = None
        self._has_ended = False
        self._error = ""
        reading, self._pipe = os.pipe()
        self._stdout = os.fdopen(reading, "rb")

    def listen(self, read: Callable[[IO[bytes]], None]) -> None:
        self._reader = _started(f"codex-stdout-{self.pid}", read, self._stdout)

    def ending(self) -> str:
        return "ended with exit code 0"

    def error_line(self) -> str:
        return self._error

    def drain_stderr(self) -> None:
        pass

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            if "method" not in message:
                self._asked.pop(message["id"]).set_result(message.get("result", {}))
            elif "id" in message:
                self._answer(message["id"], message["method"], message["params"])

    def end(self, grace_seconds: float) -> None:
        for turn in list(self._turns.values()):
            turn.interrupted.set()
        with self._lock:
            if not self._has_ended:
                self._has_ended = True
                os.close(self._pipe)
        if self._reader is not None:
            self._reader.join(LONGEST_SECONDS)

    def _send(self, message: Json) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._lock, suppress(BrokenPipeError):
            while line and not self._has_ended:
                line = line[os.write(self._pipe, line) :]

    def _tell(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    def _answer(self, number: int, method: str, params: Json) -> None:
        answers: dict[str, Callable[[Json], Json]] = {
            "initialize": lambda _: {"userAgent": "scripted", "codexHome": str(self._home)},
            "account/read": lambda _: {"account": None, "requiresOpenaiAuth": False},
            "model/list": lambda _: {"data": []},
            "skills/extraRoots/set": lambda _: {},
            "thread/start": self._start_thread,
            "thread/resume": self._resume_thread,
            "thread/fork": self._fork_thread,
            "thread/backgroundTerminals/clean": lambda _: {},
            "turn/interrupt": self._interrupt,
        }
        if method == "turn/start":
            self._start_turn(number, params)
            return
        try:
            self._send({"id": number, "result": answers[method](params)})
        except LookupError as error:
            self._send({"id": number, "error": {"code": -32600, "message": f"{method}: no such thread: {error}"}})

    def _start_thread(self, params: Json) -> Json:
        tools = [tool["name"] for tool in params.get("dynamicTools", ())]
        return self._opened(Thread(str(uuid4()), params.get("model", self._model), tools), params)

    def _resume_thread(self, params: Json) -> Json:
        return self._opened(self._load(params["threadId"], params), params)

    def _fork_thread(self, params: Json) -> Json:
        return self._opened(self._load(params["threadId"], params).fork(params["lastTurnId"]), params)

    def _load(self, thread_id: str, params: Json) -> Thread:
        if thread_id in self._threads:
            return self._threads[thread_id]
        file = rollout(self._home, thread_id)
        if not file.exists():
            raise LookupError(thread_id)
        return Thread(thread_id, params.get("model", self._model), is_new=False, **json.loads(file.read_text()))

    def _opened(self, thread: Thread, params: Json) -> Json:
        thread.model = params.get("model", thread.model)
        thread.settings = {key: value for key, value in params.items() if key not in OF_OPENING}
        self._threads[thread.id] = thread
        shown = {"id": thread.id, "path": str(rollout(self._home, thread.id))}
        return {"thread": shown, "model": thread.model, "reasoningEffort": None}

    def _interrupt(self, params: Json) -> Json:
        turn = self._turns[params["turnId"]]
        turn.interrupted.set()
        self._complete(turn, "interrupted")
        return {}

    def _start_turn(self, number: int, params: Json) -> None:
        thread = self._threads[params["threadId"]]
        prompt = "".join(part.get("text", "") for part in params["input"])
        thread.settings |= {key: params[key] for key in ("cwd", "effort") if key in params}
        asked = {"argv": self._argv, "tools": thread.tools, "schema": params.get("outputSchema"), "prompt": prompt}
        metadata = params.get("responsesapiClientMetadata", {})
        turn = Turn(str(uuid4()), thread, metadata, prompt, {**thread.settings, **asked})
        self._turns[turn.id] = turn
        thread.items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]})
        thread.save(self._home)
        self._send({"id": number, "result": {"turn": {"id": turn.id, "status": "inProgress"}}})
        self._tell("turn/started", threadId=thread.id, turn={"id": turn.id, "status": "inProgress"})
        self._item(turn, {"type": "userMessage", "id": str(uuid4()), "content": [{"type": "text", "text": prompt}]})
        _started(f"scripted-turn-{self.pid}", self._play, turn)

    def _play(self, turn: Turn) -> None:
        try:
            while self._step(turn):
                pass
        except TurnFailed as error:
            self._complete(turn, "failed", {"message": str(error), "codexErrorInfo": error.info})
        except (OSError, HTTPException):
            message = "stream disconnected before completion: Transport error: network error"
            self._complete(turn, "failed", {"message": message, "codexErrorInfo": "other"})
        else:
            self._complete(turn, "completed")

    def _step(self, turn: Turn) -> bool:
        """One model request; whether another one follows."""
        response, items = self._ask_model(turn)
        if turn.interrupted.is_set():
            return False
        calls = [self._take(turn, item) for item in items]
        usage = response.get("usage") or {}
        used = {name: usage.get(key, 0) for name, key in COUNTS.items()}
        used["cachedInputTokens"] = (usage.get("input_tokens_details") or {}).get("cached_tokens", 0)
        turn.thread.totals = {name: turn.thread.totals.get(name, 0) + count for name, count in used.items()}
        place = {"threadId": turn.thread.id, "turnId": turn.id}
        if turn.thread.is_new:
            self._tell("rawResponse/completed", **place, responseId=response["id"], usage=used)
        for call in filter(None, calls):
            self._call(turn, call)
        totals = {"total": turn.thread.totals, "last": used, "modelContextWindow": 258_400}
        self._tell("thread/tokenUsage/updated", **place, tokenUsage=totals)
        return any(calls) and not turn.interrupted.is_set()

    def _take(self, turn: Turn, item: Json) -> Json | None:
        """Report an item of the model's answer; return it if it is a tool call."""
        turn.thread.items.append(item)
        if item["type"] == "function_call":
            return item
        if item["type"] == "message":
            text = "".join(part.get("text", "") for part in item["content"])
            self._item(turn, {"type": "agentMessage", "id": item["id"], "text": text}, text)
        elif item["type"] == "web_search_call":
            query = item.get("action", {}).get("query", "")
            self._item(turn, {"type": "webSearch", "id": item["id"], "query": query, "action": item.get("action")})
        elif item["type"] == "commandExecution":
            self._item(turn, item)
        return None

    def _item(self, turn: Turn, item: Json, delta: str = "") -> None:
        place = {"threadId": turn.thread.id, "turnId": turn.id}
        self._tell("item/started", **place, item={**item, "text": ""} if "text" in item else item)
        if delta:
            self._tell("item/agentMessage/delta", **place, itemId=item["id"], delta=delta)
        self._tell("item/completed", **place, item=item)

    def _call(self, turn: Turn, call: Json) -> None:
        if call["name"] not in turn.thread.tools:
            UNKNOWN_TOOLS.append(call["name"])
            raise TurnFailed(f"the scripted Codex has no tool {call['name']}", "badRequest")
        place = {"threadId": turn.thread.id, "turnId": turn.id}
        arguments = json.loads(call["arguments"])
        item = {"type": "dynamicToolCall", "id": call["call_id"], "tool": call["name"], "arguments": arguments}
        self._tell("item/started", **place, item={**item, "status": "inProgress"})
        number = next(self._numbers)
        answer = self._asked[number] = Future()
        params = {**place, "callId": call["call_id"], "tool": call["name"], "arguments": arguments}
        self._send({"id": number, "method": "item/tool/call", "params": params})
        reply = answer.result(LONGEST_SECONDS)
        text = "".join(part["text"] for part in reply["contentItems"])
        turn.thread.items.append({"type": "function_call_output", "call_id": call["call_id"], "output": text})
        self._tell("item/completed", **place, item={**item, "status": "completed", **reply})

    def _complete(self, turn: Turn, status: str, error: Json | None = None) -> None:
        with self._lock:
            if turn.is_over:
                return
            turn.is_over = True
            turn.thread.ends[turn.id] = len(turn.thread.items)
            with suppress(FileNotFoundError):  # the run has ended, and its folder is gone
                turn.thread.save(self._home)
            ended = {"id": turn.id, "status": status, "error": error}
            self._tell("turn/completed", threadId=turn.thread.id, turn=ended)

    def _ask_model(self, turn: Turn) -> tuple[Json, Iterable[Json]]:
        """Send the conversation; the response and its complete items. Raises `TurnFailed`, OSError, HTTPException."""
        if self._model_answer is not None:
            return {"id": turn.id}, self._model_answer(turn)
        metadata = {"turn_id": turn.id, "request_kind": "turn", **turn.metadata}
        body = {
            "model": turn.thread.model,
            "input": turn.thread.items,
            "stream": True,
            "client_metadata": {"x-codex-turn-metadata": json.dumps(metadata)},
        }
        address = urlsplit(self._provider)
        connection = HTTPConnection(str(address.hostname), address.port, timeout=LONGEST_SECONDS)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"{address.path}/responses", json.dumps(body), headers)
            response = connection.getresponse()
            return self._read(response.status, response)
        finally:
            connection.close()

    def _read(self, status: int, response: HTTPResponse) -> tuple[Json, list[Json]]:
        text = response.read().decode()
        if status != 200:
            raise _http_failure(status, text, self._provider)
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        last: Json = events[-1] if events else {"type": ""}
        if last["type"] == "response.failed":
            said = last["response"]["error"]["message"]
            raise TurnFailed(f"stream disconnected before completion: {said}", "other")
        if last["type"] != "response.completed":
            raise TurnFailed("stream disconnected before completion: stream closed before response.completed", "other")
        return last["response"], items


def _started(name: str, target: Callable[..., None], *given: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=given, name=name, daemon=True)
    thread.start()
    return thread


def _http_failure(status: int, text: str, provider: str) -> TurnFailed:
    try:
        error = json.loads(text).get("error") or {}
    except ValueError:
        error = {}
    if error.get("type") == "usage_limit_reached":
        return TurnFailed(USAGE_LIMIT, "usageLimitExceeded")
    said = f"unexpected status {status}: {error.get('message', text)}, url: {provider}/responses"
    return TurnFailed(said, {"httpConnectionFailed": {"httpStatusCode": status}})
