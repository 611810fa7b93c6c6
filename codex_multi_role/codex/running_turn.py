"""A running turn: reads what Codex sends, answers its requests, and bounds every wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from codex_multi_role.codex.approvals import TOOL_CALL, ApprovalPolicy, Helpers, answer
from codex_multi_role.codex.failures import Remedy
from codex_multi_role.codex.incoming import Message
from codex_multi_role.codex.notifications import (
    CodexEvent,
    ItemCompleted,
    ItemStarted,
    ModelRerouted,
    ModelResponded,
    TokenUsageUpdated,
    TurnFinished,
    TurnStartConfirmed,
    describe,
    event_of,
    is_compaction,
    models_of_sub_agents,
    params_of,
    turn_id_of,
)
from codex_multi_role.codex.thread import RoleThread
from codex_multi_role.codex.transport import AppServerTransport, Cancelled
from codex_multi_role.codex.turn_outcome import LONGEST_PROMPT, TurnOutcome, TurnRecorder, TurnRequest
from codex_multi_role.codex.usage import TokensUsed, compaction_usage
from codex_multi_role.errors import CodexError, CodexRefused, RunInterrupted

TURN_START_SECONDS = 30.0
INTERRUPT_SECONDS = 5.0
ANSWERED_SECONDS = 1.0
"""How long an answered turn may take to end before it is interrupted, because its answer is paid for."""
CANCELLED = RunInterrupted.reason
UNKNOWN_MODEL = "an unknown model of a sub-agent"
"""In place of a model's name; nothing has this price."""


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


Observed = CodexEvent | ApprovalAnswered | TokensUsed
Observer = Callable[[Observed], None]


class RunningTurn:
    """One turn on ``thread``, from the prompt to its end. ``recorder`` has its results so far.

    ``broken`` says why the process cannot run another turn, or is empty. ``observe`` also gets what the turn and its
    sub-agents use, as soon as Codex reports it. ``helpers`` answer the role's questions to a person and its tool calls;
    the person's time does not count towards the turn. The turn ends when one of ``cancelled`` is set.
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
        self.recorder = TurnRecorder()
        self._running_sub_agents: dict[str, str] = {}
        self.broken = ""

    def run(self, request: TurnRequest) -> TurnOutcome:
        """Raises `CodexError` if the process has ended, does not respond, or rejects the turn."""
        if self._is_cancelled:
            return self.recorder.outcome("interrupted", CANCELLED, "the run was stopped before this turn")
        if len(request.prompt) > LONGEST_PROMPT:
            raise CodexRefused(f"the prompt has {len(request.prompt)} characters, Codex accepts {LONGEST_PROMPT}", 0)
        end = time.monotonic() + self._deadlines.turn
        patience = min(TURN_START_SECONDS, self._deadlines.idle)
        self.recorder.note(turn_id=self._thread.start_turn(request, patience))
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
        event, is_own = event_of(message), turn_id_of(message) in (self.recorder.seen.turn_id, None)
        match event:
            case TokenUsageUpdated() | ModelResponded():
                self._count(event, is_own=is_own)
            case ItemStarted(item) | ItemCompleted(item) if is_compaction(item):
                self._follow_compaction(event, str(params_of(message).get("threadId")))
            case ItemCompleted(item):
                self._thread.sub_agent_models |= models_of_sub_agents(item)
            case _:
                pass
        if not is_own:
            self._follow_sub_agent(event, message)
        if event is None or not is_own:
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
                with suppress(CodexError):
                    self._ask_to_end(self._running_sub_agents)
                return
            self._take(received)

    def _count(self, report: TokenUsageUpdated | ModelResponded, *, is_own: bool) -> None:
        """Count what was used on the turn's own thread, on one of a sub-agent, or by an earlier turn's last request.

        Codex also reports what a thread had used before it was resumed or forked (measured).
        """
        usage = self._thread.usage
        if isinstance(report, ModelResponded):
            self._spend(usage.count_response(report), report.thread)
        elif not is_own and report.thread in self._thread.own and not usage.knows(report.thread):
            usage.skip(report)
        else:
            self._spend(usage.count(report), report.thread)

    def _spend(self, used: TokensUsed, thread: str) -> None:
        if thread not in self._thread.own:
            used = replace(used, sub_agent_model=self._thread.sub_agent_models.get(thread, UNKNOWN_MODEL))
        self.recorder.spend(used)
        self._observe(used)

    def _follow_compaction(self, event: ItemStarted | ItemCompleted, thread: str) -> None:
        """Count what a compaction used, also where Codex does not report it: of a resumed thread, by its provider."""
        usage = self._thread.usage
        if isinstance(event, ItemStarted):
            usage.start_compaction(thread)
        elif not usage.end_compaction(thread):
            counts = compaction_usage(self._thread.rollout) if thread == self._thread.id else None
            if counts is None:
                self.recorder.note(missed_usage=True)
            else:
                self._spend(usage.count_unreported(thread, counts), thread)

    def _follow_sub_agent(self, event: CodexEvent | None, message: Message) -> None:
        """Note the running turn of a thread that the role's own thread started, and which model answers it."""
        thread = str(params_of(message).get("threadId"))
        if thread in self._thread.own:
            return
        match event:
            case TurnStartConfirmed():
                self._running_sub_agents[thread] = str(turn_id_of(message))
            case ModelRerouted(model=model):
                self._thread.sub_agent_models[thread] = model
            case TurnFinished():
                self._running_sub_agents.pop(thread, None)
            case _:
                pass

    def _answer(self, message: Message) -> None:
        method, params = message["method"], params_of(message)
        answered = answer(method, params, self._approvals, self._helpers)
        self._transport.reply(message["id"], answered.reply)
        if method != TOOL_CALL:
            self._observe(ApprovalAnswered(method, answered.decision, _detail(params, self.recorder.started_items)))

    def _interrupt(self) -> TurnFinished | None:
        """Ask Codex to end the turn and read on until it does; if it does not, set ``broken`` and return None.

        Codex refuses an interrupt before ``turn/started`` and never answers one after ``turn/completed``. So it is
        asked once, in between, and only the turn's end counts as the answer. Sub-agents are ended as well, because they
        would continue (measured).
        """
        asked = False
        self._helpers = None
        began = time.monotonic()
        while (waited := time.monotonic() - began) < INTERRUPT_SECONDS:
            is_ending = self.recorder.is_answered and waited < ANSWERED_SECONDS
            if self.recorder.is_started and not asked and not is_ending:
                self._ask_to_end({**self._running_sub_agents, self._thread.id: self.recorder.seen.turn_id})
                asked = True
            patience = ANSWERED_SECONDS if is_ending else INTERRUPT_SECONDS
            finished = self._take(self._transport.next_message(patience - waited))
            if finished is not None:
                return finished
        self.broken = f"Codex did not end the turn within {INTERRUPT_SECONDS:g} s of the request to stop"
        return None

    def _ask_to_end(self, turns: Mapping[str, str]) -> None:
        """Interrupt these turns, by thread."""
        for thread, turn in turns.items():
            self._transport.ask("turn/interrupt", {"threadId": thread, "turnId": turn})


def _detail(params: Mapping[str, Any], started: Mapping[str, Mapping[str, Any]]) -> str:
    """What Codex asks about: the command, a server's question, or the paths of a file change (joined by item id)."""
    if "command" in params:
        return str(params["command"])
    item = started.get(str(params.get("itemId")))
    return describe(item) if item else str(params.get("reason") or params.get("message") or "")
