"""Wire logs of turns whose usage is known: kept small, and replayed without Codex.

A log is NDJSON. Its first line says what it shows, what the provider counted for each request (input, cached input,
output, and what was written to the cache), and which of these requests Codex does not report. The other lines are
messages as in a wire log, as far as the usage depends on them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.running_turn import Observed, RunningTurn, TurnDeadlines
from codex_multi_role.codex.thread import RoleThread, ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRequest

Record = dict[str, Any]
OPENING = ("thread/start", "thread/resume", "thread/fork")
REQUESTS = ("initialize", *OPENING, "turn/start", "turn/interrupt", "thread/compact/start")
REPORTS = ("thread/tokenUsage/updated", "rawResponse/completed")
NOTIFICATIONS = ("turn/started", "turn/completed", *REPORTS, "item/started", "item/completed")
KEPT = {"id", "method", "params", "result", "thread", "turn", "status", "threadId", "turnId", "item", "type"}
KEPT |= {
    "tokenUsage",
    "responseId",
    "usage",
    "total",
    "last",
    "inputTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
    "outputTokens",
    "lastTurnId",
}
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shortened(lines: Iterable[Mapping[str, Any]]) -> Iterator[Record]:
    """The messages of a wire log on which the usage depends, with short ids."""
    names: dict[str, str] = {}
    awaited: set[object] = set()
    for line in lines:
        message, method = line["message"], line["message"].get("method")
        is_answer = line["direction"] == "in" and method is None and message.get("id") in awaited
        if line["direction"] == "out" and method in REQUESTS:
            awaited.add(message["id"])
        elif not is_answer and method not in NOTIFICATIONS:
            continue
        text = json.dumps({"direction": line["direction"], "message": _kept(message)})
        yield json.loads(UUID.sub(lambda found: names.setdefault(found[0], f"id-{len(names) + 1}"), text))


def _kept(value: Any) -> Any:
    return {key: _kept(each) for key, each in value.items() if key in KEPT} if isinstance(value, dict) else value


@dataclass
class LogTransport:
    """One process of a log: answers each request, and sends each notification, as recorded."""

    lines: list[Record]
    _asked: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outs = [line["message"] for line in self.lines if line["direction"] == "out"]
        ins = [line["message"] for line in self.lines if line["direction"] == "in"]
        self._answers = {each["id"]: each["result"] for each in ins if "method" not in each}
        self._notifications = iter([each for each in ins if "method" in each])
        for each in self.outs:
            self._asked.setdefault(each["method"], []).append(each["id"])

    def request(self, method: str, params: object, deadline_seconds: float) -> Message:
        answer: Message = self._answers[self._asked[method].pop(0)]
        return answer

    def ask(self, method: str, params: object) -> Future[Message]:
        return Future()

    def next_message(self, timeout_seconds: float) -> Message | None:
        return next(self._notifications, None)


def replayed(lines: Iterable[Record], observe: Callable[[Observed], None] = lambda _: None) -> list[TurnOutcome]:
    """Each turn in the log, its usage counted as in a run. ``observe`` gets every event."""
    ended = []
    for process in _processes(lines):
        transport = LogTransport(process)
        thread = RoleThread(cast(AppServerTransport, transport), ThreadSettings("/", "read-only", "never", None), {})
        for message in transport.outs:
            if message["method"] in OPENING:
                asked, last = (message["params"].get(key) for key in ("threadId", "lastTurnId"))
                thread._inherited = {asked: last} if last else {}
                thread.open(asked)
            elif message["method"] == "turn/start":
                ended.append(_turn(transport, thread, observe))
    return ended


def _turn(transport: LogTransport, thread: RoleThread, observe: Callable[[Observed], None]) -> TurnOutcome:
    deadlines = TurnDeadlines(1, 1)
    running = RunningTurn(
        cast(AppServerTransport, transport), thread, ApprovalPolicy(), deadlines, observe, None,
        (threading.Event(),),
    )  # fmt: skip
    return running.run(TurnRequest("go"))


def _processes(lines: Iterable[Record]) -> list[list[Record]]:
    found: list[list[Record]] = []
    for line in lines:
        if line["message"].get("method") == "initialize":
            found.append([])
        found[-1].append(line)
    return found


def read_log(path: Path) -> tuple[Record, list[Record]]:
    """The first line of a log, and its messages."""
    first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    return first, lines
