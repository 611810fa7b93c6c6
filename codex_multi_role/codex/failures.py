"""Codex's turn errors in our terms: one table from its error classes to a reason and a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

REPLAY_DIFFERS = "not as recorded: "
"""Prefix of every message about a difference in a replay, including refusals that Codex passes on."""


class Remedy(Enum):
    """How to react to a failed turn."""

    FAIL = "the role has failed"
    RETRY = "the same prompt again, after a pause"
    FRESH_THREAD = "a new thread that gets the role's last handoff"
    PARK = "the run is parked until the provider accepts turns again"


@dataclass(frozen=True)
class Failure:
    """``reason`` is the ``outcome`` of ``turn.json``; ``pause_seconds`` is the pause the provider asked for, if any."""

    reason: str
    remedy: Remedy
    message: str
    pause_seconds: float | None = None


FAILED = ("failed", Remedy.FAIL)
BAD_REQUEST = ("bad_request", Remedy.FAIL)
NOT_FOUND = ("not_found", Remedy.FAIL)
UNAUTHORIZED = ("unauthorized", Remedy.FAIL)
AGAINST_POLICY = ("against_policy", Remedy.FAIL)
QUOTA = ("quota", Remedy.PARK)
RATE_LIMITED = ("rate_limited", Remedy.RETRY)
OVERLOADED = ("overloaded", Remedy.RETRY)
UNREACHABLE = ("unreachable", Remedy.RETRY)
PROVIDER_ERROR = ("provider_error", Remedy.RETRY)

NOT_AS_RECORDED = ("not_as_recorded", Remedy.FAIL)

_CLASSES: Mapping[str, tuple[str, Remedy]] = {
    "contextWindowExceeded": ("context_full", Remedy.FRESH_THREAD),
    "sessionBudgetExceeded": QUOTA,
    "usageLimitExceeded": QUOTA,
    "rateLimitExceeded": RATE_LIMITED,
    "serverOverloaded": OVERLOADED,
    "flexUnavailable": OVERLOADED,
    "internalServerError": PROVIDER_ERROR,
    "unauthorized": UNAUTHORIZED,
    "badRequest": BAD_REQUEST,
    "cyberPolicy": AGAINST_POLICY,
    "misalignmentPolicyViolation": AGAINST_POLICY,
    "tooManyDenials": ("denied_too_often", Remedy.FAIL),
    "sandboxError": ("sandbox_error", Remedy.FAIL),
}
_STATUSES: Mapping[int, tuple[str, Remedy]] = {
    401: UNAUTHORIZED,
    402: QUOTA,  # the account has no credit left
    403: UNAUTHORIZED,
    404: NOT_FOUND,
    429: RATE_LIMITED,
}
_CONNECTING = ("httpConnectionFailed", "responseStreamConnectionFailed")
_HTTP_CLASSES = (
    *_CONNECTING,
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
)
STREAM_BROKE = "stream disconnected"
"""Codex's text for every broken stream, always of class ``other`` (measured); the body of a 400 has that class too."""
TRY_AGAIN = re.compile(r"try again in (\d+(?:\.\d+)?) ?(ms|s)\b")
"""How a rate-limiting provider words its pause; Codex never passes on a ``Retry-After`` header (measured)."""

_UNEXPECTED_STATUS = re.compile(r"unexpected status (\d{3})(?: [A-Z][\w '-]*)?: (.*?)(, url: .*)?$", re.DOTALL)
"""Codex's text for a response with another status than 200 (measured)."""
_LAST_STATUS = re.compile(r"\blast status: (\d{3})(?: [A-Z][\w'-]*)*")

NO_FREE_DESCRIPTOR = ("os error 24", "os error 23")
"""How Codex, written in Rust, reports EMFILE and ENFILE."""


def lacks_descriptors(message: str) -> bool:
    """Whether Codex failed because it could not open more files, in whatever operation."""
    return any(each in message for each in NO_FREE_DESCRIPTOR)


def classify(error: Mapping[str, Any] | None) -> Failure:
    """Classify a protocol TurnError (``turn.error`` of ``turn/completed``)."""
    if error is None:
        return Failure(*FAILED, "Codex gave no reason")
    message = str(error.get("message", "")).strip() or "Codex gave no message"
    reason, remedy = _row(error.get("codexErrorInfo"), message)
    return Failure(reason, remedy, _in_words(message), _pause(message) if remedy is Remedy.RETRY else None)


def _in_words(message: str) -> str:
    """``message`` without the name of an HTTP status; what the playbook says of itself needs no status at all."""
    if (found := _UNEXPECTED_STATUS.match(message)) is None:
        return _LAST_STATUS.sub(r"last HTTP status: \1", message)
    status, said, url = found.groups()
    if said.startswith("playbook "):
        return said
    return f"the model provider answered with HTTP status {status}: {said}{url or ''}"


def _row(info: object, message: str) -> tuple[str, Remedy]:
    if isinstance(info, Mapping):
        kind = next((name for name in _HTTP_CLASSES if name in info), None)
        if kind is None:
            return FAILED
        if REPLAY_DIFFERS in message:
            return NOT_AS_RECORDED
        details = info[kind] if isinstance(info[kind], Mapping) else {}
        status = details.get("httpStatusCode")
        return UNREACHABLE if status is None and kind in _CONNECTING else _by_http_status(status)
    if info == "other":
        return PROVIDER_ERROR if STREAM_BROKE in message else BAD_REQUEST
    return _CLASSES.get(info, FAILED) if isinstance(info, str) else FAILED


def _by_http_status(status: object) -> tuple[str, Remedy]:
    if not isinstance(status, int) or status >= 500:
        return PROVIDER_ERROR
    return _STATUSES.get(status, BAD_REQUEST if status >= 400 else FAILED)


def _pause(message: str) -> float | None:
    found = TRY_AGAIN.search(message)
    return float(found[1]) / (1000 if found[2] == "ms" else 1) if found else None
