"""A running turn: reads what Codex sends, answers its requests, and bounds every wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codex_multi_role.codex.approvals import TOOL_CALL, ApprovalPolicy, Helpers, answer
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.notifications import (
    CodexEvent,
    EventParser,
    TokenUsageUpdated,
    TurnFinished,
    TurnStartConfirmed,
    describe,
    params_of,
    turn_id_of,
)
from codex_multi_role.codex.thread import RoleThread
from codex_multi_role.codex.transport import AppServerTransport, Cancelled
from codex_multi_role.codex.turn_outcome import LONGEST_PROMPT, TurnOutcome, TurnRecorder, TurnRequest
from codex_multi_role.errors import CodexError, CodexRefused, RunInterrupted

TURN_START_SECONDS = 30.0
INTERRUPT_SECONDS = 5.0
CANCELLED = RunInterrupted.reason


@dataclass(frozen=True)
class TurnDeadlines:
    """``idle``: the longest silence; ``turn``: the longest turn; both in seconds."""

    idle: float
    turn: float


@dataclass(frozen=True)
class ApprovalAnswered:
    """A server request and its answer."""

    method: str
    decision: str
    detail: str


Observer = Callable[[CodexEvent | ApprovalAnswered], None]


class RunningTurn:
    """One turn on ``thread``, from the prompt to its end. ``recorder`` has its results so far.

    ``broken`` says why the process cannot run another turn, or is empty. ``sub_agents`` count the tokens of their
    threads. ``helpers`` answer the role's questions to a person and its tool calls; the person's time does not count
    towards the turn. The turn ends when another thread sets one of ``cancelled``.
    """

    def __init__(
        self,
        transport: AppServerTransport,
        thread: RoleThread,
        approvals: ApprovalPolicy,
        deadlines: TurnDeadlines,
        observe: Observer,
        helpers: Helpers | None,
        cancelled: Sequence[threading.Event],
    ) -> None:
        self._transport, self._thread, self._approvals = transport, thread, approvals
        self._deadlines, self._observe, self._helpers, self._cancelled = deadlines, observe, helpers, cancelled
        self._parser = EventParser()
        self.recorder = TurnRecorder(thread.totals)
        self.sub_agents: dict[str, TurnRecorder] = {}
        self._running_sub_agents: set[str] = set()
        self.broken = ""

    def run(self, request: TurnRequest) -> TurnOutcome:
        """Raises `CodexError` if the process has ended, does not respond, or rejects the turn."""
        if self._is_cancelled:
            return self.recorder.outcome("interrupted", CANCELLED, "the run was stopped before this turn")
        if len(request.prompt) > LONGEST_PROMPT:
            raise CodexRefused(f"the prompt has {len(request.prompt)} characters, Codex accepts {LONGEST_PROMPT}", 0)
        end = time.monotonic() + self._deadlines.turn
        patience = min(TURN_START_SECONDS, self._deadlines.idle)
        self.recorder.turn_id = self._thread.start_turn(request, patience)
        while not self._is_cancelled:
            received = self._transport.next_message(min(self._deadlines.idle, self._seconds_to(end)))
            late = self._seconds_to(end) <= 0
            if received is None or late:
                return self._give_up(late, received)
            finished = self._take(received)
            if finished is not None:
                self._await_sub_agents(end)
                return self.recorder.finished(finished)
        finished = self._interrupt()
        if finished is not None and finished.status == "completed":
            return self.recorder.finished(finished)
        return self.recorder.outcome("interrupted", CANCELLED, "the run was stopped during this turn")

    @property
    def _is_cancelled(self) -> bool:
        return any(each.is_set() for each in self._cancelled)

    def _seconds_to(self, end: float) -> float:
        return end + (self._helpers.person_seconds if self._helpers else 0.0) - time.monotonic()

    def _give_up(self, late: bool, received: Message | Cancelled | None) -> TurnOutcome:
        """End the turn after a deadline, and report which one passed. The message in ``received`` still counts."""
        self._helpers = None
        finished = self._take(received)
        if finished is not None:
            return self.recorder.finished(finished)
        finished = self._interrupt()
        if finished is not None and finished.status == "completed":
            return self.recorder.finished(finished)
        if late:
            message = f"the turn took longer than {self._deadlines.turn:g} s"
            return self.recorder.outcome("timed_out", "timed_out", message)
        message = f"Codex was silent for {self._deadlines.idle:g} s"
        return self.recorder.outcome("stalled", "stalled", message, Remedy.RETRY)

    def _take(self, message: Message | Cancelled | None) -> TurnFinished | None:
        """Handle one message. The events of other turns are ignored, in particular a late ``turn/completed``."""
        if message is None or isinstance(message, Cancelled):  # may be left from an earlier turn
            return None
        if "id" in message:
            self._answer(message)
            return None
        if turn_id_of(message) not in (self.recorder.turn_id, None):
            self._count_sub_agent(message)
            return None
        event = self._parser.parse(message)
        if event is None:
            return None
        self.recorder.add(event)
        self._observe(event)
        return event if isinstance(event, TurnFinished) else None

    def _await_sub_agents(self, end: float) -> None:
        """Wait for sub-agents that outlive the role's turn (measured): their tokens count, and they may still write.

        If they do not end in the turn's time, the process takes no other turn.
        """
        while self._running_sub_agents:
            patience = min(self._deadlines.idle, self._seconds_to(end))
            try:
                received = self._transport.next_message(patience) if patience > 0 and not self._is_cancelled else None
            except CodexError as error:
                self.broken = str(error)
                return
            if received is None:
                self.broken = "its sub-agents were still working at the end of the turn"
                return
            self._take(received)

    def _count_sub_agent(self, message: Message) -> None:
        """Count the tokens of a thread that the role's own thread started, and track whether it is running."""
        event, thread = self._parser.parse(message), str(params_of(message).get("threadId"))
        if thread in self._thread.own:
            return
        if isinstance(event, TurnStartConfirmed):
            self._running_sub_agents.add(thread)
        elif isinstance(event, TurnFinished):
            self._running_sub_agents.discard(thread)
        elif isinstance(event, TokenUsageUpdated):
            before = self._thread.sub_agents.get(thread)
            self.sub_agents.setdefault(thread, TurnRecorder(before)).add(event)

    def _answer(self, message: Message) -> None:
        method, params = message["method"], params_of(message)
        answered = answer(method, params, self._approvals, self._helpers)
        self._transport.reply(message["id"], answered.reply)
        if method != TOOL_CALL:
            self._observe(ApprovalAnswered(method, answered.decision, _detail(params, self.recorder.started_items)))

    def _interrupt(self) -> TurnFinished | None:
        """Ask Codex to end the turn and read on until it does; if it does not, set ``broken`` and return None.

        Codex refuses an interrupt before ``turn/started`` and never answers one after ``turn/completed``. So it is
        asked once, in between, and only the turn's end counts as the answer.
        """
        asked = False
        self._helpers = None
        end = time.monotonic() + INTERRUPT_SECONDS
        while (remaining := end - time.monotonic()) > 0:
            if self.recorder.begun and not asked:
                turn = {"threadId": self._thread.id, "turnId": self.recorder.turn_id}
                self._transport.ask("turn/interrupt", turn)
                asked = True
            finished = self._take(self._transport.next_message(remaining))
            if finished is not None:
                return finished
        self.broken = f"Codex did not end the turn within {INTERRUPT_SECONDS:g} s of the request to stop"
        return None


def _detail(params: Mapping[str, Any], started: Mapping[str, Mapping[str, Any]]) -> str:
    """What Codex asks about: the command, a server's question, or the paths of a file change (joined by item id)."""
    if "command" in params:
        return str(params["command"])
    item = started.get(str(params.get("itemId")))
    return describe(item) if item else str(params.get("reason") or params.get("message") or "")
