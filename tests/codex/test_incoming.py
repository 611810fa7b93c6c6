from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from codex_multi_role.codex import incoming
from codex_multi_role.codex.approvals import ApprovalPolicy, answer
from codex_multi_role.codex.incoming import OUTPUT, OUTPUT_CHARACTERS, Incoming

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
