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


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "unexpected status 422 Unprocessable Entity: no such model, url: https://host/v1/responses",
            "the model provider answered with HTTP status 422: no such model, url: https://host/v1/responses",
        ),
        ("unexpected status 418 I'm a teapot: tea", "the model provider answered with HTTP status 418: tea"),
        ("unexpected status 404: gone\nnow", "the model provider answered with HTTP status 404: gone\nnow"),
        (
            "unexpected status 422 Unprocessable Entity: playbook p has no visit 2, url: http://127.0.0.1:1/v1/responses",
            "playbook p has no visit 2",
        ),
        (
            "exceeded retry limit, last status: 503 Service Unavailable, id: X",
            "exceeded retry limit, last HTTP status: 503, id: X",
        ),
        ("stream disconnected before completion", "stream disconnected before completion"),
    ],
)
def test_http_status_is_explained_in_our_words(message: str, words: str) -> None:
    assert classify({"message": message}).message == words


def test_missing_reason_is_reported_as_missing() -> None:
    assert classify(None).message == "Codex gave no reason"
