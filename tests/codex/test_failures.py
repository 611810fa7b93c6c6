from __future__ import annotations

import pytest

from codex_multi_role.codex.failures import Remedy, classify


@pytest.mark.parametrize(
    ("info", "reason", "remedy"),
    [
        ("contextWindowExceeded", "context_full", Remedy.FRESH_THREAD),
        ("usageLimitExceeded", "quota", Remedy.PARK),
        ("serverOverloaded", "overloaded", Remedy.RETRY),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "unauthorized", Remedy.FAIL),
        ({"httpConnectionFailed": {"httpStatusCode": 404}}, "not_found", Remedy.FAIL),
        ({"httpConnectionFailed": {"httpStatusCode": 402}}, "quota", Remedy.PARK),
        ({"httpConnectionFailed": {"httpStatusCode": 422}}, "bad_request", Remedy.FAIL),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "unreachable", Remedy.RETRY),
        ({"responseStreamConnectionFailed": {}}, "unreachable", Remedy.RETRY),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": None}}, "provider_error", Remedy.RETRY),
        ("cyberPolicy", "against_policy", Remedy.FAIL),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 503}}, "provider_error", Remedy.RETRY),
        ({"responseStreamDisconnected": {}}, "provider_error", Remedy.RETRY),
        ("aClassOfANewerCodex", "failed", Remedy.FAIL),
        ({"aClassOfANewerCodex": {}}, "failed", Remedy.FAIL),
        ({"httpConnectionFailed": "in another shape"}, "unreachable", Remedy.RETRY),
        ({"httpConnectionFailed": {"httpStatusCode": "401"}}, "provider_error", Remedy.RETRY),
        (None, "failed", Remedy.FAIL),
    ],
)
def test_classes_of_codex_in_our_terms(info: object, reason: str, remedy: Remedy) -> None:
    failure = classify({"message": "why", "codexErrorInfo": info})
    assert (failure.reason, failure.remedy, failure.message) == (reason, remedy, "why")


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 11.054s.", 11.054),
        ("Please try again in 250ms", 0.25),
        ("try again in 20 s", 20.0),
        ("try again at 4:14 AM", None),
        ("try again in a while", None),
    ],
)
def test_pause_a_provider_asks_for_is_read_from_its_words(message: str, seconds: float | None) -> None:
    assert classify({"message": message, "codexErrorInfo": "rateLimitExceeded"}).pause_seconds == seconds
    assert classify({"message": message, "codexErrorInfo": "usageLimitExceeded"}).pause_seconds is None


def test_missing_reason_is_reported_as_missing() -> None:
    assert classify(None).message == "Codex gave no reason"
