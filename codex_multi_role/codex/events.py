"""Notifications of the app-server protocol as typed events: what a turn needs to know, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class TurnBegun:
    """``turn/started``: from here on the turn can be interrupted, not before."""


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ItemStarted:
    item: JsonObject


@dataclass(frozen=True)
class ItemCompleted:
    item: JsonObject


@dataclass(frozen=True)
class TokensCounted:
    """Absolute totals of the thread, and the part of its last model request."""

    input_total: int
    output_total: int
    input_last: int
    output_last: int


@dataclass(frozen=True)
class DiffUpdated:
    """The turn's whole unified diff so far, as Codex saw it."""

    diff: str


@dataclass(frozen=True)
class TurnFinished:
    """``status`` is completed, interrupted or failed; ``error`` is the protocol's TurnError."""

    status: str
    error: JsonObject | None


@dataclass(frozen=True)
class WarningIssued:
    message: str


CodexEvent = (
    TurnBegun | TextDelta | ItemStarted | ItemCompleted | TokensCounted | DiffUpdated | TurnFinished | WarningIssued
)


def _tokens(params: Mapping[str, Any]) -> TokensCounted:
    total, last = params["tokenUsage"]["total"], params["tokenUsage"]["last"]
    return TokensCounted(total["inputTokens"], total["outputTokens"], last["inputTokens"], last["outputTokens"])


class EventParser:
    """Turns notifications into events; what it does not know, or a newer Codex shapes otherwise, is no event."""

    _READERS: Mapping[str, Callable[[Mapping[str, Any]], CodexEvent]] = {
        "turn/started": lambda _: TurnBegun(),
        "item/agentMessage/delta": lambda params: TextDelta(params["delta"]),
        "item/started": lambda params: ItemStarted(params["item"]),
        "item/completed": lambda params: ItemCompleted(params["item"]),
        "thread/tokenUsage/updated": _tokens,
        "turn/diff/updated": lambda params: DiffUpdated(params["diff"]),
        "turn/completed": lambda params: TurnFinished(params["turn"]["status"], params["turn"].get("error")),
        "warning": lambda params: WarningIssued(params["message"]),
        "configWarning": lambda params: WarningIssued(params["summary"]),
    }

    def parse(self, message: Mapping[str, Any]) -> CodexEvent | None:
        """The event in ``message``, or None."""
        reader = self._READERS.get(message.get("method", ""))
        try:
            return reader(message.get("params") or {}) if reader else None
        except (KeyError, TypeError):
            return None


def turn_id_of(message: Mapping[str, Any]) -> str | None:
    """The turn a message speaks of, where it names one."""
    params = message.get("params")
    if not isinstance(params, Mapping):
        return None
    turn = params.get("turn")
    found = turn.get("id") if isinstance(turn, Mapping) else params.get("turnId")
    return found if isinstance(found, str) else None


def describe(item: Mapping[str, Any]) -> str:
    """One line for people: what kind of item, and its gist."""
    match item.get("type"):
        case "commandExecution":
            return f"command: {item.get('command', '')}"
        case "fileChange":
            return "file change: " + ", ".join(change.get("path", "?") for change in item.get("changes", []))
        case "agentMessage":
            return "message"
        case "dynamicToolCall":
            return f"tool: {item.get('tool', '')}"
        case kind:
            return str(kind)
