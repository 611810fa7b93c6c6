"""The request and the outcome of a turn, on the protocol's side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codex_multi_role.codex.failures import Remedy, classify
from codex_multi_role.codex.notifications import (
    CodexEvent,
    ItemCompleted,
    ItemStarted,
    RateLimitsUpdated,
    TextDelta,
    TurnFinished,
    TurnStartConfirmed,
    changes_of,
    describe,
    is_compaction,
)
from codex_multi_role.codex.usage import TokensUsed, TokenUsage

LONGEST_PROMPT = 1_048_576
ITEM_TEXT_LIMIT = 20_000
ITEMS_TEXT_LIMIT = 5_000_000


@dataclass(frozen=True)
class TurnRequest:
    """``turn/start``: the prompt and its settings. ``metadata`` reaches the model provider.

    ``effort`` and ``model`` stay those of the thread, None: as before. ``output_schema`` is for this turn only.
    """

    prompt: str
    output_schema: Mapping[str, Any] | None = None
    effort: str | None = None
    model: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def params(self, thread_id: str) -> dict[str, Any]:
        optional = {
            "outputSchema": self.output_schema,
            "effort": self.effort,
            "model": self.model,
            "responsesapiClientMetadata": dict(self.metadata) or None,
        }
        return {
            "threadId": thread_id,
            "input": [{"type": "text", "text": self.prompt}],
            **{key: value for key, value in optional.items() if value is not None},
        }


@dataclass(frozen=True)
class TurnOutcome:
    """How a turn ended. ``status``: completed, failed, timed_out, stalled, crashed or interrupted; ``reason`` why.

    ``text`` is the last completed agent message, ``items_text`` a readable account of every item. ``usage``: of this
    turn alone. ``odd_usage``: a count shrank, was negative or not a number, and counts as zero. ``turn_id`` is Codex's
    id of the turn, ``web_searches`` counts Codex's own web searches. ``remedy`` and ``pause_seconds`` as in `Failure`.
    ``resets_at``: when a used-up usage limit resets, in Unix seconds, if the provider reported it. ``compacted``: Codex
    replaced earlier parts of the thread by a summary. ``missed_usage``: Codex did not report what such a compaction
    used, so that ``usage`` lacks it.
    """

    status: str
    reason: str
    message: str
    text: str = ""
    delta_text: str = ""
    items_text: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    remedy: Remedy = Remedy.FAIL
    pause_seconds: float | None = None
    resets_at: int | None = None
    ran_commands: bool = False
    turn_id: str = ""
    web_searches: int = 0
    odd_usage: bool = False
    compacted: bool = False
    missed_usage: bool = False


class TurnRecorder:
    """Collects one turn's events into a `TurnOutcome`.

    ``seen``: the outcome so far. ``is_answered``: the latest model request ended with a message and nothing has started
    since, so that the turn is about to end.
    """

    def __init__(self) -> None:
        self.seen = TurnOutcome("", "", "")
        self._deltas: list[str] = []
        self._items: list[str] = []
        self._items_room = ITEMS_TEXT_LIMIT
        self.started_items: dict[str, Mapping[str, Any]] = {}
        self._said = False
        self.is_answered = False
        self.is_started = False

    def note(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of the outcome
        self.seen = replace(self.seen, **changes)

    def add(self, event: CodexEvent) -> None:
        match event:
            case TurnStartConfirmed():
                self.is_started = True
            case TextDelta(text):
                self._deltas.append(text)
            case ItemStarted(item):
                self.started_items[str(item.get("id"))] = item
                self._said = self.is_answered = False
                if item.get("type") == "commandExecution":
                    self.note(ran_commands=True)
                if is_compaction(item):
                    self.note(compacted=True)
            case ItemCompleted(item):
                self._complete(item)
            case RateLimitsUpdated(resets_at):
                self.note(resets_at=resets_at)
            case _:
                pass

    def _complete(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        self.started_items.pop(str(item.get("id")), None)
        if kind == "userMessage":
            return
        if kind == "webSearch":
            self.note(web_searches=self.seen.web_searches + 1)
        if kind == "agentMessage":
            self.note(text=str(item.get("text", "")))
            self._said = True
        if self._items_room > 0:
            self._items.append(item_text(item))
            self._items_room -= len(self._items[-1])
            if self._items_room <= 0:
                self._items.append("## Later items are only in events.jsonl\n")

    def spend(self, used: TokensUsed) -> None:
        if used.usage.total or self._said:  # a total that repeats what a response reported says nothing new
            self.is_answered, self._said = self._said, False
        self.note(usage=self.seen.usage + used.usage, odd_usage=self.seen.odd_usage or used.is_odd)

    def outcome(
        self,
        status: str,
        reason: str,
        message: str,
        remedy: Remedy = Remedy.FAIL,
        pause_seconds: float | None = None,
    ) -> TurnOutcome:
        self.note(delta_text="".join(self._deltas), items_text="\n".join(self._items))
        self.note(status=status, reason=reason, message=message, remedy=remedy, pause_seconds=pause_seconds)
        return self.seen

    def finished(self, event: TurnFinished) -> TurnOutcome:
        """The outcome when Codex itself ended the turn."""
        if event.status == "completed":
            return self.outcome("completed", "", "")
        if event.status == "interrupted":
            return self.outcome("interrupted", "interrupted", "the turn was interrupted")
        if event.status != "failed":
            return self.outcome(
                "failed", "failed", f"Codex ended the turn as {event.status}; it may be an unsupported version"
            )
        failure = classify(event.error)
        return self.outcome("failed", failure.reason, failure.message, failure.remedy, failure.pause_seconds)


def item_text(item: Mapping[str, Any]) -> str:
    """Format an item as Markdown: a heading, then its text or output, truncated."""
    body = item.get("text") or item.get("aggregatedOutput") or ""
    match item.get("type"):
        case "fileChange":
            body = "\n".join(str(change.get("diff", "")) for change in changes_of(item))
        case "reasoning":
            summary = item.get("summary")
            body = "\n\n".join(map(str, summary)) if isinstance(summary, list) else ""
        case "mcpToolCall":
            body = _labelled(item, "arguments", "result", "error")
        case "webSearch":
            body = _labelled(item, "action", "results")
    details = [f"{key}: {item[key]}" for key in ("status", "exitCode") if item.get(key) is not None]
    heading = f"## {describe(item)}" + (f" ({', '.join(details)})" if details else "")
    return f"{heading}\n\n{str(body)[:ITEM_TEXT_LIMIT]}\n"


def _labelled(item: Mapping[str, Any], *keys: str) -> str:
    """The item's values for these keys, as JSON."""
    found = ((key, item.get(key)) for key in keys)
    return "\n\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in found if value is not None)
