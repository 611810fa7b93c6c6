"""What Codex sends: requests, which are answered, notifications, and failures by their kind."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.codex import incoming
from codex_multi_role.codex.approvals import ApprovalPolicy, answer
from codex_multi_role.codex.failures import Remedy, classify
from codex_multi_role.codex.incoming import OUTPUT, OUTPUT_CHARACTERS, Incoming
from codex_multi_role.codex.notifications import (
    READERS,
    ItemCompleted,
    ModelRerouted,
    TurnFinished,
    WarningIssued,
    event_of,
    models_of_sub_agents,
    turn_id_of,
)
from codex_multi_role.codex.turn_outcome import TurnRecorder

STARTED: dict[str, Any] = {"method": "turn/started", "params": {}}
ENDED: dict[str, Any] = {"method": "turn/completed", "params": {}}


def printed(text: str) -> dict[str, Any]:
    return {"method": OUTPUT, "params": {"itemId": "command", "delta": text}}


def arrived(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What arrives of ``messages`` on their way through a pipe."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            for message in messages:
                pipe.write(json.dumps(message).encode() + b"\n")

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb"):
        found = [each.message for each in Incoming(reading)]
    writer.join(10)
    return [message for message in found if message is not None]


def test_command_output_is_kept_up_to_limit_and_rest_counted() -> None:
    """The limit applies to the output of each turn."""
    piece = "x" * 400_000
    found = arrived([STARTED, *(printed(piece) for _ in range(5)), ENDED, STARTED, printed(piece), ENDED])
    ends = [index for index, message in enumerate(found) if message["method"] == "turn/completed"]
    first, second = (
        "".join(message["params"]["delta"] for message in part if message["method"] == OUTPUT)
        for part in (found[: ends[0]], found[ends[0] :])
    )
    assert first.count("x") == OUTPUT_CHARACTERS
    left_out = [int(part.split("[")[1]) for part in first.split(" characters left out]")[:-1]]
    assert sum(left_out) == 5 * len(piece) - OUTPUT_CHARACTERS
    assert second == piece


def test_line_longer_than_the_limit_is_given_up_and_the_next_one_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "LONGEST_LINE", 10)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0) as pipe:
        lines = iter(Incoming(reading))
        pipe.write(b"x" * 11)
        assert next(lines).message is None
        pipe.write(json.dumps(ENDED).encode() + b"\n")
        assert next(lines).message == ENDED


def test_default_policy_declines() -> None:
    for kind in ("commandExecution", "fileChange"):
        assert answer(f"item/{kind}/requestApproval", {}, ApprovalPolicy()).reply == {"result": {"decision": "decline"}}


def test_permissions_are_granted_per_turn_with_commands_only() -> None:
    """They are granted for one turn, and only if commands are allowed."""
    asked = {"permissions": {"network": {"enabled": True}}}
    denied = answer("item/permissions/requestApproval", asked, ApprovalPolicy(file_changes=True))
    granted = answer("item/permissions/requestApproval", asked, ApprovalPolicy(commands=True))
    assert denied.reply == {"result": {"permissions": {}, "scope": "turn"}}
    assert granted.reply == {"result": {**asked, "scope": "turn"}}


def test_what_is_not_known_is_an_error_never_silence() -> None:
    given = answer("item/somethingNew", {}, ApprovalPolicy(commands=True, file_changes=True))
    assert given.decision == "unsupported"
    assert given.reply["error"]["code"] == -32601


WORDS = ["fileChange", "agentMessage", "commandExecution", "completed", "failed"]
METHODS = [*READERS, "new/method"]
OF_ITEMS = ["id", "type", "changes", "path", "text", "status", "model", "agentThreadId", "receiverThreadIds"]
KEYS = ["turn", "item", "error", "codexErrorInfo", "delta", "new", *OF_ITEMS]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.lists(st.tuples(st.sampled_from(METHODS), st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)) | JSON))
)
def test_messages_of_any_shape_are_events_or_nothing(told: list[tuple[str, object]]) -> None:
    recorder = TurnRecorder()
    for method, params in told:
        message = {"method": method, "params": params}
        turn_id_of(message)
        event = event_of(message)
        if event is not None:
            recorder.add(event)
        if isinstance(event, ItemCompleted):
            models_of_sub_agents(event.item)
        if isinstance(event, TurnFinished):
            recorder.finished(event)
    recorder.outcome("stalled", "stalled", "silent")


def test_unknown_turn_status_is_reported_as_a_failure() -> None:
    """A newer Codex may end a turn with a status that is unknown here."""
    outcome = TurnRecorder().finished(TurnFinished("paused", None))
    assert (outcome.status, outcome.reason) == ("failed", "failed")
    assert "ended the turn as paused" in outcome.message


def test_finished_turn() -> None:
    message = {"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "failed"}}}
    assert event_of(message) == TurnFinished("failed", None)
    assert turn_id_of(message) == "u"


def test_rerouting_names_the_model_that_answers() -> None:
    params = {"fromModel": "a", "toModel": "b", "reason": "highRiskCyberActivity", "turnId": "u", "threadId": "t"}
    event = event_of({"method": "model/rerouted", "params": params})
    assert event == ModelRerouted("the model b answers instead of a (highRiskCyberActivity)", "b")


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("warning", {"message": "Model metadata for `x` not found.\n Be careful."}, None),
        ("warning", {"message": "Model metadata for `playbook` not found."}, ""),
        ("guardianWarning", {"message": "denied", "threadId": "t"}, "denied"),
        ("configWarning", {"summary": "Error parsing rules", "details": "line 1\nline 2"}, None),
        ("deprecationNotice", {"summary": "old is deprecated.", "details": "Use new."}, "old is deprecated. Use new."),
        ("mcpServer/startupStatus/updated", {"name": "s", "status": "starting", "error": None}, ""),
        ("mcpServer/startupStatus/updated", {"name": "s", "status": "failed"}, "the MCP server s did not start"),
        ("warning", {"message": "x" * 5_000}, "x" * 500),
    ],
)
def test_every_kind_of_warning_has_its_text(method: str, params: dict[str, object], text: str | None) -> None:
    """In one line, and bounded; empty if nobody needs to know."""
    said = " ".join(" ".join(str(params[key]) for key in ("message", "summary", "details") if key in params).split())
    assert event_of({"method": method, "params": params}) == WarningIssued(said if text is None else text)


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
