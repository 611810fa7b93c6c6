"""What a turn used, and its events while it runs and at its end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.notifications import ItemCompleted, ItemStarted, WarningIssued, describe
from codex_multi_role.codex.running_turn import ApprovalAnswered, Observed
from codex_multi_role.codex.turn_outcome import TurnOutcome
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.reading.json_types import Json
from codex_multi_role.replies import Reply
from codex_multi_role.run_folder.cost import Cost, as_number
from codex_multi_role.run_folder.events import (
    Approval,
    CommandEnded,
    DoneIgnored,
    McpCallEnded,
    ReplyRepaired,
    RoleActivity,
    RunEvent,
    TurnEnded,
    TurnStarted,
    UsageCounted,
    Warning,
)
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.turn_record import TurnPrompt, TurnResult


class TurnUsage:
    """``model``: the one that answers the role now; a provider may change it. Sub-agents may have others.

    ``is_missing``: the provider did not report it, so that the cost is unknown.
    """

    def __init__(self, prices: PriceList, model: str) -> None:
        self._prices = prices
        self._by_model: dict[str, TokenUsage] = defaultdict(TokenUsage)
        self.model = model
        self.is_missing = False

    def add(self, usage: TokenUsage, sub_agent_model: str | None = None) -> None:
        self._by_model[sub_agent_model or self.model] += usage

    @property
    def tokens(self) -> TokenUsage:
        return sum(self._by_model.values(), TokenUsage())

    @property
    def cost(self) -> Decimal | None:
        """In US dollars; None if it is unknown, or ``model``, or another one that was used, has no price."""
        if self.is_missing:
            return None
        used = {self.model: TokenUsage(), **self._by_model}
        return sum((Cost.of(self._prices.cost(*each)) for each in used.items()), Cost()).known

    def as_json(self) -> Json:
        """``tokens`` and ``cost`` in ``turn.json``; ``tokens_by_model`` if they are not all those of one ``model``."""
        by_model = {model: tokens.as_record() for model, tokens in self._by_model.items()}
        more = {"tokens_by_model": by_model} if by_model.keys() - {self.model} else {}
        return {"tokens": self.tokens.as_record(), **more, "cost": as_number(self.cost)}


SUMMARY_LENGTH = 200
SHOWN_CORRECTIONS = 5
NO_EXIT_CODE = -1


class TurnEvents:
    """Publishes the events of turn ``number``. ``approvals``: what Codex has requested, with the decisions."""

    def __init__(self, run: RunResources, role: RoleSpec, instance: str, number: int) -> None:
        self._run = run
        self._role = role
        self._instance = instance
        self._number = number
        self._activity = ""
        self.approvals: list[Json] = []

    def started(self, asked: TurnPrompt, attempt: int, model: str, thread_id: str) -> None:
        self._publish(
            TurnStarted(
                role=self._instance,
                turn=self._number,
                cycle=asked.cycle,
                attempt=attempt,
                repair_of=asked.follows.repair_of,
                continues=asked.follows.continues,
                unit=asked.unit,
                model=model,
                thread_id=thread_id,
                worked_seconds=round(self._run.services.clock.seconds, 3),
            )
        )

    def observe(self, event: Observed) -> None:
        match event:
            case ApprovalAnswered(method, decision, detail):
                told = self._run.services.folder.redact(detail)
                self.approvals.append({"method": method, "decision": decision, "detail": told})
                self._publish(Approval(self._instance, self._number, method, decision, detail))
            case ItemStarted(item) if item.get("type") != "userMessage":
                self._report_activity(describe(item))
            case ItemCompleted(item) if item.get("type") == "commandExecution":
                self._publish(self._command(item))
            case ItemCompleted(item) if item.get("type") == "mcpToolCall":
                self._publish(self._mcp_call(item))
            case WarningIssued(message) if message:
                self._run.services.events.warn_once(self._instance, message)
            case _:
                pass

    def counted(self, used: TurnUsage) -> None:
        tokens, cost = used.tokens, as_number(used.cost)
        self._publish(UsageCounted(self._instance, self._number, tokens.input, tokens.output, cost))

    def ended(
        self, result: TurnResult, outcome: TurnOutcome, reply: Reply | None, seconds: float, used: TurnUsage
    ) -> None:
        """``reply`` is None if Codex did not answer."""
        if reply is not None:
            self._report_reading(reply)
        handoff = (reply and reply.handoff) or {}
        self._publish(
            TurnEnded(
                role=self._instance,
                turn=self._number,
                status=result.status,
                outcome=result.outcome,
                reason=result.reason,
                input_tokens=outcome.usage.input,
                output_tokens=outcome.usage.output,
                seconds=seconds,
                summary=self._short(handoff.get("summary", "")),
                worked_seconds=round(self._run.services.clock.seconds, 3),
                cost=as_number(used.cost),
            )
        )
        if says_done(handoff) and not self._role.behaviors.can_finish:
            self._publish(DoneIgnored(self._instance, self._number))

    def _report_reading(self, reply: Reply) -> None:
        """Publish what had to be done, or overlooked, to take the answer."""
        if reply.repaired_locally:
            self._publish(ReplyRepaired(self._instance, self._number))
        if reply.corrections:
            shown, more = reply.corrections[:SHOWN_CORRECTIONS], len(reply.corrections) - SHOWN_CORRECTIONS
            told = ", ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
            self._publish(Warning(f"{self._instance}: its answer was corrected: {told}"))
        if reply.error:
            counts = "; its DONE does not count" if says_done(reply.handoff or {}) else ""
            said = f"its answer is a handoff, but has an error: {self._short(reply.error)}"
            self._publish(Warning(f"{self._instance}: {said}{counts}"))

    def _mcp_call(self, item: Mapping[str, Any]) -> McpCallEnded:
        return McpCallEnded(
            role=self._instance,
            turn=self._number,
            server=str(item.get("server")),
            tool=str(item.get("tool")),
            arguments=self._short(json.dumps(item.get("arguments"), ensure_ascii=False)),
            status=str(item.get("status")),
            result=self._short(_said(item)),
            seconds=_seconds(item),
        )

    def _command(self, item: Mapping[str, Any]) -> CommandEnded:
        code = item.get("exitCode")
        return CommandEnded(
            role=self._instance,
            turn=self._number,
            command=self._short(item.get("command", "")),
            exit_code=code if isinstance(code, int) else NO_EXIT_CODE,
            seconds=_seconds(item),
        )

    def _short(self, text: object) -> str:
        """Redacted before it is cut, because the beginning of a secret is not recognized."""
        return self._run.services.folder.redact(str(text))[:SUMMARY_LENGTH]

    def _report_activity(self, activity: str) -> None:
        if activity != self._activity:
            self._activity = activity
            self._publish(RoleActivity(self._instance, self._number, activity))

    def _publish(self, event: RunEvent) -> None:
        self._run.services.events.publish(event)


def _said(item: Mapping[str, Any]) -> str:
    """The texts of an MCP tool's result or, without any, the whole result; of a failed call, its error."""
    result = item.get("error") or item.get("result")
    content = result.get("content") if isinstance(result, dict) else None
    parts = content if isinstance(content, list) else []
    texts = [str(each["text"]) for each in parts if isinstance(each, dict) and "text" in each]
    return "\n".join(texts) or json.dumps(result, ensure_ascii=False)


def _seconds(item: Mapping[str, Any]) -> float:
    milliseconds = item.get("durationMs")
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0


def says_done(handoff: Mapping[str, Any]) -> bool:
    """Whether the handoff's ``status`` is DONE, in any case."""
    return str(handoff.get("status", "")).strip().upper() == "DONE"
