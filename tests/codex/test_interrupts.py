"""Whether a turn is interrupted at once, by what Codex has sent before: an answered turn gets a moment to end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.running_turn import Observed, RunningTurn, TurnDeadlines
from codex_multi_role.codex.thread import RoleThread, ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnRequest
from codex_multi_role.codex.usage_counter import TokensUsed

Message = dict[str, Any]


def item(event: str, kind: str) -> Message:
    return {"method": f"item/{event}", "params": {"turnId": "u", "item": {"type": kind, "id": kind, "text": "done"}}}


def ending(status: str) -> Message:
    return {"method": "turn/completed", "params": {"turn": {"id": "u", "status": status}}}


STARTED: Message = {"method": "turn/started", "params": {"turn": {"id": "u"}}}
ANSWERED = item("completed", "agentMessage")
COUNTS = {"inputTokens": 1, "cachedInputTokens": 0, "outputTokens": 0}
USAGE: Message = {
    "method": "thread/tokenUsage/updated",
    "params": {"threadId": "t", "turnId": "u", "tokenUsage": {"total": COUNTS, "last": COUNTS}},
}
RESPONSE: Message = {
    "method": "rawResponse/completed",
    "params": {"threadId": "t", "turnId": "u", "responseId": "r", "usage": COUNTS},
}


@dataclass
class Sending:
    """Sends ``messages``; then the turn is interrupted if it was asked for, otherwise it is completed."""

    messages: list[Message]
    interrupts: list[Mapping[str, str]] = field(default_factory=list)

    def request(self, method: str, params: object, deadline_seconds: float) -> Message:
        return {"turn": {"id": "u"}, "thread": {"id": "t"}}

    def ask(self, method: str, params: Mapping[str, str]) -> Future[Message]:
        self.interrupts.append(params)
        return Future()

    def next_message(self, timeout_seconds: float) -> Message:
        return self.messages.pop(0) if self.messages else ending("interrupted" if self.interrupts else "completed")


@pytest.mark.parametrize(
    ("messages", "is_interrupted"),
    [
        ([STARTED, ANSWERED, USAGE], False),
        ([STARTED, USAGE], True),
        ([STARTED, ANSWERED, item("started", "commandExecution"), USAGE], True),
        ([STARTED, ANSWERED, USAGE, item("started", "reasoning")], True),
        ([STARTED, ANSWERED, RESPONSE, USAGE], False),
        ([STARTED, RESPONSE, item("started", "commandExecution")], True),
        ([STARTED, ANSWERED, RESPONSE, item("started", "commandExecution"), USAGE], True),
    ],
)
def test_only_an_unanswered_turn_is_interrupted(messages: list[Message], is_interrupted: bool) -> None:
    """A report of usage sets the event that ends the turn."""
    sending, end = Sending([*messages]), threading.Event()
    transport = cast(AppServerTransport, sending)
    thread = RoleThread(transport, ThreadSettings("/", "read-only", "never", None), {})
    thread.open(None)

    def stop(event: Observed) -> None:
        if isinstance(event, TokensUsed):
            end.set()

    turn = RunningTurn(transport, thread, ApprovalPolicy(), TurnDeadlines(5, 5), stop, None, (end,))
    outcome = turn.run(TurnRequest("go"))
    assert outcome.status == ("interrupted" if is_interrupted else "completed")
    assert sending.interrupts == ([{"threadId": "t", "turnId": "u"}] if is_interrupted else [])
