"""What Codex says of a failed turn, in our terms: one table from its error classes to a reason and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Failure:
    """``reason`` is the terminal reason of ``turn.json``; a retryable one may succeed when tried again unchanged."""

    reason: str
    retryable: bool
    message: str


_CLASSES: Mapping[str, tuple[str, bool]] = {
    "contextWindowExceeded": ("context_full", False),
    "sessionBudgetExceeded": ("quota", False),
    "usageLimitExceeded": ("quota", False),
    "rateLimitExceeded": ("rate_limited", True),
    "serverOverloaded": ("overloaded", True),
    "internalServerError": ("provider_error", True),
    "unauthorized": ("unauthorized", False),
    "badRequest": ("bad_request", False),
    "cyberPolicy": ("refused", False),
    "misalignmentPolicyViolation": ("refused", False),
    "tooManyDenials": ("refused", False),
    "sandboxError": ("sandbox_error", False),
}
_HTTP_CLASSES = (
    "httpConnectionFailed",
    "responseStreamConnectionFailed",
    "responseStreamDisconnected",
    "responseTooManyFailedAttempts",
)
STREAM_BROKE = "stream disconnected"
"""How Codex words every broken stream, all in the class ``other`` (measured); a 400's body comes in that class too."""
RATE_LIMITED = 429
FIRST_SERVER_ERROR = 500
FIRST_CLIENT_ERROR = 400
UNAUTHORIZED = (401, 403)


def classify(error: Mapping[str, Any] | None) -> Failure:
    """The failure in a protocol TurnError (``turn.error`` of ``turn/completed``)."""
    if error is None:
        return Failure("failed", False, "Codex gave no reason")
    message = str(error.get("message", "")).strip() or "Codex gave no message"
    info = error.get("codexErrorInfo")
    if isinstance(info, Mapping):
        kind = next((name for name in _HTTP_CLASSES if name in info), None)
        if kind is not None:
            details = info[kind] if isinstance(info[kind], Mapping) else {}
            return _by_http_status(details.get("httpStatusCode"), message)
    if info == "other":
        broke = STREAM_BROKE in message
        return Failure("provider_error" if broke else "bad_request", broke, message)
    reason, retryable = _CLASSES.get(info, ("failed", False)) if isinstance(info, str) else ("failed", False)
    return Failure(reason, retryable, message)


def _by_http_status(status: object, message: str) -> Failure:
    if not isinstance(status, int) or status >= FIRST_SERVER_ERROR:
        return Failure("provider_error", True, message)
    if status == RATE_LIMITED:
        return Failure("rate_limited", True, message)
    if status in UNAUTHORIZED:
        return Failure("unauthorized", False, message)
    return Failure("bad_request" if status >= FIRST_CLIENT_ERROR else "failed", False, message)
