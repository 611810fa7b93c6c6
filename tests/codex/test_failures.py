from __future__ import annotations

import pytest

from codex_multi_role.codex.failures import classify


@pytest.mark.parametrize(
    ("info", "reason", "retryable"),
    [
        ("contextWindowExceeded", "context_full", False),
        ("usageLimitExceeded", "quota", False),
        ("serverOverloaded", "overloaded", True),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "unauthorized", False),
        ({"httpConnectionFailed": {"httpStatusCode": 404}}, "bad_request", False),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "provider_error", True),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 503}}, "provider_error", True),
        ({"responseStreamDisconnected": {}}, "provider_error", True),
        ("aClassOfANewerCodex", "failed", False),
        ({"aClassOfANewerCodex": {}}, "failed", False),
        ({"httpConnectionFailed": "in another shape"}, "provider_error", True),
        ({"httpConnectionFailed": {"httpStatusCode": "401"}}, "provider_error", True),
        (None, "failed", False),
    ],
)
def test_classes_of_codex_in_our_terms(info: object, reason: str, retryable: bool) -> None:
    failure = classify({"message": "why", "codexErrorInfo": info})
    assert (failure.reason, failure.retryable, failure.message) == (reason, retryable, "why")


def test_no_reason_is_said_to_be_none() -> None:
    assert classify(None).message == "Codex gave no reason"
