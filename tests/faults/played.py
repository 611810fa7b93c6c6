"""Faults that are caused on the real binary, and what a run makes of each: a table that `test_played` carries out.

A role is asked once, and the fault befalls it at every attempt: so the run stops with the fault's own word.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from codex_multi_role.codex.child import Child
from tests.support.teams import Record, say

TRIES = 3
"""How often a prompt is sent; repair turns are as many."""


def stop_in_the_middle_of_a_prompt(patch: pytest.MonkeyPatch, first: int = 1, last: int = TRIES) -> None:
    """Stop the process that a prompt is being written to, when it has its beginning: prompts ``first`` to ``last``."""
    write = Child.write
    prompts: list[int] = []

    def stop_and_write(child: Child, data: bytes) -> None:
        begin = 0
        if b'"method": "turn/start"' in data:
            prompts.append(child.pid)
            if first <= len(prompts) <= last:
                begin = 1_000
                write(child, data[:begin])
                os.kill(child.pid, signal.SIGSTOP)
                os.waitpid(child.pid, os.WUNTRACED)  # a signal stops its threads one by one; until then they read on
        write(child, data[begin:])

    patch.setattr("codex_multi_role.codex.child.WRITE_SECONDS", 0.3)
    patch.setattr(Child, "write", stop_and_write)


def leave_alone(_: pytest.MonkeyPatch) -> None:
    """The playbook brings the fault about."""


@dataclass(frozen=True)
class Played:
    """``play``: what the playbook's model does, or a command that it asks for. ``settings``: in place of the playbook.
    ``arrange``: brings about what no model can; ``prompt``: the role's prompt.

    ``status``, ``outcome``: of each of the ``turns`` that are taken; the run ends with the same ``outcome`` and
    ``exit_code``. ``words``: of the reason; ``advice``: of what the screen says to do besides resuming.
    """

    play: Record
    status: str
    outcome: str
    turns: int = TRIES
    exit_code: int = 3
    words: str = ""
    advice: str = "tries again"
    settings: tuple[str, ...] = ()
    arrange: Callable[[pytest.MonkeyPatch], None] = leave_alone
    prompt: str = "Do it."
    limits: Mapping[str, float] = field(default_factory=lambda: {"idle_seconds": 20, "turn_seconds": 60})


def fault(**details: object) -> Record:
    return {"fault": details}


def command(line: str) -> Record:
    """The model asks for a command, which Codex runs as a child of its own."""
    return {"steps": [{"call": "exec_command", "arguments": {"cmd": line, "yield_time_ms": 30_000}}, say()]}


def provider_at(url: str) -> tuple[str, ...]:
    table = {"name": "test", "base_url": url, "wire_api": "responses"}
    return ('model_provider="test"', *(f"model_providers.test.{key}={json.dumps(each)}" for key, each in table.items()))


IMPATIENT = {"idle_seconds": 0.6, "turn_seconds": 30}
LONGER_IDLE = "raise the role's limits.idle_seconds"
LARGER_THAN_THE_PIPE = "x" * 150_000
BROKEN = "stream disconnected before completion"

PLAYED: Mapping[str, Played] = {
    "connection refused": Played(
        {},
        "failed",
        "unreachable",
        words="Connection failed",
        advice="Check the network and the provider's base_url",
        settings=provider_at("http://127.0.0.1:1/v1"),
    ),
    "server accepts and sends nothing": Played(
        fault(stall_seconds=600, after_events=0), "stalled", "stalled", words="0.6 s", limits=IMPATIENT
    ),
    "SSE stalls": Played(
        fault(stall_seconds=600), "stalled", "stalled", words="0.6 s", advice=LONGER_IDLE, limits=IMPATIENT
    ),
    "429": Played(fault(status=429), "failed", "rate_limited", words="HTTP status: 429", advice="--max-processes"),
    "usage limit": Played(fault(status=429, code="usage_limit_reached"), "failed", "quota", 1, 5, words="usage limit"),
    "insufficient quota": Played(fault(code="insufficient_quota"), "failed", "quota", 1, 5, words="Quota exceeded"),
    "500": Played(fault(status=500), "failed", "provider_error", words="high demand"),
    "503 overloaded": Played(
        fault(status=503, code="server_is_overloaded"),
        "failed",
        "overloaded",
        words="at capacity",
        advice="another model",
    ),
    "401": Played(
        fault(status=401),
        "failed",
        "unauthorized",
        1,
        words="HTTP status 401",
        advice="`codex-multi-role codex login`",
    ),
    "404": Played(
        fault(status=404), "failed", "not_found", 1, words="HTTP status 404", advice="Unknown model or address"
    ),
    "400": Played(fault(status=400), "failed", "bad_request", 1, words="requested by the playbook"),
    "drop": Played(fault(drop=True), "failed", "provider_error", words=BROKEN),
    "EOF before the first byte": Played(fault(drop=True, after_events=0), "failed", "provider_error", words=BROKEN),
    "bad JSON": Played(fault(garbage='data: {"type"\n\n'), "failed", "provider_error", words=BROKEN),
    "HTML with 200": Played(fault(garbage="<html>"), "failed", "provider_error", words=BROKEN),
    "context length exceeded": Played(
        fault(code="context_length_exceeded"),
        "failed",
        "context_full",
        1,
        words="ran out of room",
        advice="pass less",
    ),
    "empty answer": Played(
        fault(empty=True), "invalid_reply", "empty_answer", words="The answer was empty", advice="--repair-attempts"
    ),
    "prose instead of JSON": Played(
        {"text": "I am done."}, "invalid_reply", "invalid_reply", words="no JSON object", advice="--repair-attempts"
    ),
    "kill -9 of the child mid-turn": Played(
        command("kill -9 $PPID"), "crashed", "crashed", words="ended with signal 9 (Killed)"
    ),
    "SIGSTOP of the child mid-turn": Played(
        command("kill -STOP $PPID"), "stalled", "stalled", words="0.6 s", advice=LONGER_IDLE, limits=IMPATIENT
    ),
    "SIGSTOP of the child while its prompt is written": Played(
        say(),
        "stalled",
        "stalled",
        words="Codex accepted no input for 0.3 s",
        advice="keeps Codex from running",
        arrange=stop_in_the_middle_of_a_prompt,
        prompt=LARGER_THAN_THE_PIPE,
    ),
    "a turn without an end": Played(
        command("while :; do echo on; sleep 0.1; done"),
        "timed_out",
        "timed_out",
        1,
        words="longer than 1 s",
        advice="limits.turn_seconds",
        limits={"idle_seconds": 20, "turn_seconds": 1},
    ),
}

ALWAYS_PLAYED = (
    "connection refused",
    "server accepts and sends nothing",
    "insufficient quota",
    "401",
    "prose instead of JSON",
    "empty answer",
    "kill -9 of the child mid-turn",
    "SIGSTOP of the child while its prompt is written",
    "a turn without an end",
)
"""Those by which each remedy is tried, and each way to find a fault out; the others only in the long run."""
