"""Notifications of the app-server protocol as typed events, limited to what a turn needs; Codex's warnings in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from codex_multi_role.reading.json_types import Json

Params = Mapping[str, Any]
Counts = tuple[int | None, ...]
MAX_CHARACTERS = 500
EXPECTED = re.compile(r"Codex will use the bundled bubblewrap|^Model metadata for `playbook` not found")
"""Warnings of every run with the bundled binary, or with a playbook."""
UNTRUSTED_PROJECT = "Project-local config, hooks, and exec policies are disabled"
UNTRUSTED_PROJECT_TEXT = "a project's .codex settings (config, hooks, rules) have no effect in a run"
"""Codex's own text advises trusting the project, which changes nothing here."""


def _text(*parts: object) -> str:
    text = " ".join(" ".join(str(part) for part in parts if part).split())
    if text.startswith(UNTRUSTED_PROJECT):
        return UNTRUSTED_PROJECT_TEXT
    return "" if EXPECTED.search(text) else text[:MAX_CHARACTERS]


USED_UP_PERCENT = 100


@dataclass(frozen=True)
class TurnStartConfirmed:
    """``turn/started``: only from here on can the turn be interrupted."""


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ItemStarted:
    item: Json


@dataclass(frozen=True)
class ItemCompleted:
    item: Json


@dataclass(frozen=True)
class TokenUsageUpdated:
    """Absolute totals of ``thread``, and those of its last model request; None for a value that is not a number.

    Each is input, the cached part of it, output, and the part of the input that was written to the cache.
    """

    thread: str
    totals: Counts
    lasts: Counts


@dataclass(frozen=True)
class ModelResponded:
    """``rawResponse/completed``: what one model request of ``thread`` used, a compaction too; counts as above.

    ``response``: the provider's id of its answer. Codex sends it for threads that were started with
    ``experimentalRawEvents`` and for their sub-agents, but not for resumed threads and forks (measured).
    """

    thread: str
    response: str
    usage: Counts


@dataclass(frozen=True)
class TurnFinished:
    """``status`` is completed, interrupted or failed; ``error`` is the protocol's TurnError."""

    status: str
    error: Json | None


@dataclass(frozen=True)
class WarningIssued:
    """``message`` is empty if nobody needs to read it."""

    message: str


@dataclass(frozen=True)
class ModelRerouted(WarningIssued):
    """``model/rerouted``: ``model`` answers instead of the requested one, as far as known for the rest of the turn."""

    model: str


@dataclass(frozen=True)
class RateLimitsUpdated:
    """``account/rateLimits/updated``: when the last of the used-up limits resets, in Unix seconds."""

    resets_at: int | None


CodexEvent = (
    TurnStartConfirmed
    | TextDelta
    | ItemStarted
    | ItemCompleted
    | TokenUsageUpdated
    | ModelResponded
    | TurnFinished
    | WarningIssued
    | RateLimitsUpdated
)

Known = TypeVar("Known")


def _checked(kind: type[Known], value: object) -> Known:
    """Return ``value`` if it has the type ``kind``. Raises TypeError."""
    if not isinstance(value, kind):
        raise TypeError
    return value


def _tokens(params: Params) -> TokenUsageUpdated:
    usage = params["tokenUsage"]
    return TokenUsageUpdated(_checked(str, params["threadId"]), _counts(usage["total"]), _counts(usage["last"]))


def _response(params: Params) -> ModelResponded:
    thread, response = (_checked(str, params[key]) for key in ("threadId", "responseId"))
    return ModelResponded(thread, response, _counts(_checked(dict, params["usage"])))


def _counts(usage: Mapping[str, Any]) -> Counts:
    written = _count(usage, "cacheWriteInputTokens") if "cacheWriteInputTokens" in usage else 0
    return _count(usage, "inputTokens"), _count(usage, "cachedInputTokens"), _count(usage, "outputTokens"), written


def _count(usage: Mapping[str, Any], key: str) -> int | None:
    count = usage.get(key)
    return count if type(count) is int else None


def _finish(params: Params) -> TurnFinished:
    turn = params["turn"]
    error = turn.get("error")
    return TurnFinished(_checked(str, turn["status"]), error if isinstance(error, dict) else None)


def _limits(params: Params) -> RateLimitsUpdated:
    windows = [params["rateLimits"].get(name) or {} for name in ("primary", "secondary")]
    used_up = [window.get("resetsAt") for window in windows if window.get("usedPercent", 0) >= USED_UP_PERCENT]
    return RateLimitsUpdated(max((_checked(int, each) for each in used_up if each is not None), default=None))


def _rerouting(params: Params) -> ModelRerouted:
    model = _checked(str, params["toModel"])
    text = _text(f"the model {model} answers instead of {params['fromModel']} ({params['reason']})")
    return ModelRerouted(text, model)


def _message(params: Params) -> WarningIssued:
    return WarningIssued(_text(params["message"]))


def _summary(params: Params) -> WarningIssued:
    return WarningIssued(_text(params["summary"], params.get("details")))


def _server(params: Params) -> WarningIssued:
    """MCP servers report every state in one notification; only a failure is a warning."""
    if params["status"] != "failed":
        return WarningIssued("")
    return WarningIssued(_text(params.get("error") or f"the MCP server {params['name']} did not start"))


READERS: Mapping[str, Callable[[Params], CodexEvent]] = {
    "turn/started": lambda _: TurnStartConfirmed(),
    "item/agentMessage/delta": lambda params: TextDelta(_checked(str, params["delta"])),
    "item/started": lambda params: ItemStarted(_checked(dict, params["item"])),
    "item/completed": lambda params: ItemCompleted(_checked(dict, params["item"])),
    "thread/tokenUsage/updated": _tokens,
    "rawResponse/completed": _response,
    "turn/completed": _finish,
    "account/rateLimits/updated": _limits,
    "model/rerouted": _rerouting,
    "warning": _message,
    "guardianWarning": _message,
    "configWarning": _summary,
    "deprecationNotice": _summary,
    "mcpServer/startupStatus/updated": _server,
}
"""The notifications that a turn needs, by method."""


def event_of(message: Mapping[str, Any]) -> CodexEvent | None:
    """The event in ``message``; None for an unknown one, or one that a newer Codex shapes differently."""
    reader = READERS.get(message.get("method", ""))
    try:
        return reader(params_of(message)) if reader else None
    except (KeyError, TypeError, AttributeError):
        return None


def params_of(message: Mapping[str, Any]) -> Json:
    """The message's parameters by name; empty if it has none, or has them in another form."""
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def turn_id_of(message: Mapping[str, Any]) -> str | None:
    """The turn that a message belongs to, if it names one."""
    params = params_of(message)
    turn = params.get("turn")
    found = turn.get("id") if isinstance(turn, Mapping) else params.get("turnId")
    return found if isinstance(found, str) else None


def is_compaction(item: Mapping[str, Any]) -> bool:
    """Whether Codex replaces earlier parts of the thread by a summary."""
    return item.get("type") == "contextCompaction"


def models_of_sub_agents(item: Mapping[str, Any]) -> dict[str, str]:
    """The model of each sub-agent that a completed item started, by thread.

    ``collabAgentToolCall`` or ``subAgentActivity``; the model of the role decides which of the two Codex sends.
    """
    started, model = item.get("receiverThreadIds"), item.get("model")
    threads = [item.get("agentThreadId"), *(started if isinstance(started, list) else ())]
    return {thread: model for thread in threads if isinstance(thread, str)} if isinstance(model, str) and model else {}


def describe(item: Mapping[str, Any]) -> str:
    """One line for people: the kind of item and its gist."""
    match item.get("type"):
        case "commandExecution":
            return f"command: {item.get('command', '')}"
        case "fileChange":
            return "file change: " + ", ".join(str(change.get("path", "?")) for change in changes_of(item))
        case "agentMessage":
            return "message"
        case "dynamicToolCall":
            return f"tool: {item.get('tool', '')}"
        case "mcpToolCall":
            return f"MCP tool: {item.get('server', '')}/{item.get('tool', '')}"
        case "webSearch":
            return f"web search: {item.get('query', '')}"
        case kind:
            return str(kind)


def changes_of(item: Mapping[str, Any]) -> list[Json]:
    """The changes that a ``fileChange`` item lists."""
    changes = item.get("changes")
    return [change for change in changes if isinstance(change, dict)] if isinstance(changes, list) else []
