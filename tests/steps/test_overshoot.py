"""What a limit that a turn exceeds does to running turns: each uses at most the request that it was waiting for."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

import pytest

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.running_turn import Observed, RunningTurn, TurnDeadlines
from codex_multi_role.codex.thread import RoleThread, ThreadSettings
from codex_multi_role.codex.transport import CANCELLED, AppServerTransport
from codex_multi_role.codex.turn_outcome import TurnOutcome, TurnRequest
from codex_multi_role.codex.usage import TokensUsed
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.work_clock import WorkClock

SECONDS = 20.0
ROLE = RoleSpec(name="one", prompt_text="Do it.")
Message = dict[str, Any]


def ending(status: str) -> Message:
    return {"method": "turn/completed", "params": {"turn": {"id": "u", "status": status}}}


def item(event: str, kind: str) -> Message:
    return {"method": f"item/{event}", "params": {"turnId": "u", "item": {"type": kind, "id": kind, "text": "done"}}}


def counts(tokens: int) -> dict[str, int]:
    return {"inputTokens": tokens, "cachedInputTokens": 0, "outputTokens": 0}


@dataclass
class Line:
    """A simulated app-server with one turn. ``in_flight``: the request that completes before the interrupt arrives.

    ``reports_each``: it reports each request, before the totals. ``first``: what it sends once the turn has started.
    """

    in_flight: int = 0
    reports_each: bool = False
    first: list[Message] = field(default_factory=list)
    interrupts: list[object] = field(default_factory=list)
    inbox: queue.Queue[Any] = field(default_factory=queue.Queue)
    changed: threading.Condition = field(default_factory=threading.Condition)
    sent: int = 0
    asked: int = 0
    total: int = 0
    last: int = 0

    def request(self, method: str, params: object, deadline_seconds: float) -> Any:
        if method == "thread/start":
            return {"thread": {"id": "t"}}
        for message in ({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}}, *self.first):
            self.send(message)
        return {"turn": {"id": "u"}}

    def ask(self, method: str, params: object) -> Future[Any]:
        self.interrupts.append(params)
        if self.in_flight:
            self.report(self.in_flight)
        self.end("interrupted")
        return Future()

    def next_message(self, timeout_seconds: float) -> Any:
        with self.changed:
            self.asked += 1
            self.changed.notify_all()
        return self.inbox.get(timeout=SECONDS)

    def send(self, message: object) -> None:
        with self.changed:
            self.sent += 1
            self.changed.notify_all()
        self.inbox.put(message)

    def report(self, tokens: int) -> None:
        self.total, self.last = self.total + tokens, tokens
        usage = {"total": counts(self.total), "last": counts(tokens)}
        where = {"threadId": "t", "turnId": "u"}
        if self.reports_each:
            response = {**where, "responseId": f"at {self.total}", "usage": counts(tokens)}
            self.send({"method": "rawResponse/completed", "params": response})
        self.send({"method": "thread/tokenUsage/updated", "params": {**where, "tokenUsage": usage}})

    def end(self, status: str) -> None:
        self.send(ending(status))

    def await_reader(self, exceeded: threading.Event) -> None:
        """Wait until the turn has handled all that was sent, or a limit is exceeded."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.asked > self.sent or exceeded.is_set(), SECONDS)


def take(line: Line, budget: Budget) -> TurnOutcome:
    """Run the turn as a step does: what it uses is counted at once, and an exceeded limit wakes it."""

    def observe(event: Observed) -> None:
        if isinstance(event, TokensUsed):
            budget.spend(ROLE, "m", event.usage)

    transport = cast(AppServerTransport, line)
    thread = RoleThread(transport, ThreadSettings("/", "read-only", "never", None), {})
    thread.open(None)
    deadlines, ends = TurnDeadlines(SECONDS, SECONDS), (budget.exceeded,)
    with budget.exceeded.calling(lambda: line.send(CANCELLED)):
        return RunningTurn(transport, thread, ApprovalPolicy(), deadlines, observe, None, ends).run(TurnRequest("go"))


def played(random: Random, lines: list[Line], budget: Budget, limit: int) -> list[TurnOutcome]:
    """Report random requests until one exceeds the limit, or the turns end."""
    with ThreadPoolExecutor(len(lines)) as pool:
        turns = [pool.submit(take, line, budget) for line in lines]
        for _ in range(random.randrange(60)):
            line, tokens = random.choice(lines), random.randrange(1, 100)
            line.await_reader(budget.exceeded)
            if sum(each.total for each in lines) + tokens > limit:
                line.in_flight = 0  # its next request has just started
            line.report(tokens)
            line.await_reader(budget.exceeded)
            if budget.exceeded.is_set():
                break
        else:
            for line in lines:
                line.await_reader(budget.exceeded)
                line.end("completed")
        return [turn.result(SECONDS) for turn in turns]


def test_overshoot_is_at_most_one_request_per_running_turn() -> None:
    for seed in range(100):
        random = Random(seed)
        limit = random.randrange(1, 2_000)
        lines = [
            Line(random.choice((0, random.randrange(1, 100))), reports_each=random.random() < 0.5)
            for _ in range(random.randrange(1, 5))
        ]
        budget = Budget(Limits(tokens=limit), [], WorkClock(0.0))
        turns = played(random, lines, budget, limit)
        used = sum(turn.usage.total for turn in turns)
        assert used == sum(line.total for line in lines)
        assert used - limit <= sum(line.last for line in lines), f"stream {seed}"
        expected = "interrupted" if used > limit else "completed"
        assert {turn.status for turn in turns} == {expected}, f"stream {seed}"


ANSWERED = item("completed", "agentMessage")
USAGE: Message = {
    "method": "thread/tokenUsage/updated",
    "params": {"threadId": "t", "turnId": "u", "tokenUsage": {"total": counts(1), "last": counts(1)}},
}
RESPONSE: Message = {
    "method": "rawResponse/completed",
    "params": {"threadId": "t", "turnId": "u", "responseId": "r", "usage": counts(1)},
}


@pytest.mark.parametrize(
    ("messages", "is_interrupted"),
    [
        ([ANSWERED, USAGE], False),
        ([USAGE], True),
        ([ANSWERED, item("started", "commandExecution"), USAGE], True),
        ([ANSWERED, USAGE, item("started", "reasoning")], True),
        ([ANSWERED, RESPONSE, USAGE], False),
        ([RESPONSE, item("started", "commandExecution")], True),
        ([ANSWERED, RESPONSE, item("started", "commandExecution"), USAGE], True),
    ],
)
def test_only_an_unanswered_turn_is_interrupted(messages: list[Message], is_interrupted: bool) -> None:
    """One that is answered gets a moment to end."""
    line = Line(first=messages if is_interrupted else [*messages, ending("completed")])
    outcome = take(line, Budget(Limits(tokens=0), [], WorkClock(0.0)))
    assert outcome.status == ("interrupted" if is_interrupted else "completed")
    assert line.interrupts == ([{"threadId": "t", "turnId": "u"}] if is_interrupted else [])
