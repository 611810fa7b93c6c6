"""Faults that are caused on the real binary, one or more of each kind of remedy: a table that `test_table` carries out.

A role is asked once, and the fault befalls its process at the start, or its turn at every attempt: so the run stops
with the fault's own word. What a provider answers otherwise is classified alike: `tests/codex/test_client.py`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codex_multi_role.codex.child import Child
from codex_multi_role.codex.locator import find_codex
from tests.support.teams import Record, say

TRIES = 3
"""How often a prompt is sent; repair turns are as many."""
PLAYBOOK = ("--playbook", "playbook.yaml")
OPENAI = ("-c", 'model_provider="openai"')
FIX_SETTING = "the setting that it names: -c, the role's codex_config, config.toml or CODEX_HOME"
IMPATIENT = {"idle_seconds": 0.6, "turn_seconds": 30}
LARGER_THAN_THE_PIPE = "x" * 150_000


def stop_in_the_middle_of_a_prompt(patch: pytest.MonkeyPatch) -> None:
    """Stop each process that a prompt is being written to, when it has its beginning."""
    write = Child.write

    def stop_and_write(child: Child, data: bytes) -> None:
        begin = 0
        if b'"method": "turn/start"' in data:
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
class Fault:
    """``play``: what the playbook's model does, or a command that it asks for. ``given``: the model, and other options.
    ``arrange``: brings about what no model can; ``prompt``: the role's prompt. ``home``: makes the user's Codex home.

    ``status``, ``outcome``: of each of the ``turns`` that are taken; the run ends with the same ``outcome`` and
    ``exit_code``. ``words``: of the reason; ``advice``: of what the screen says to do besides resuming, once ``fixed``
    is given.
    """

    play: Record
    status: str
    outcome: str
    turns: int = TRIES
    exit_code: int = 3
    words: str = ""
    advice: str = "tries again"
    given: tuple[str, ...] = PLAYBOOK
    arrange: Callable[[pytest.MonkeyPatch], None] = leave_alone
    prompt: str = "Do it."
    limits: Mapping[str, float] = field(default_factory=lambda: {"idle_seconds": 20, "turn_seconds": 60})
    home: Callable[[Path], object] = Path.mkdir
    fixed: tuple[str, ...] = ()


def start_failed(given: tuple[str, ...], words: str, advice: str = FIX_SETTING, **more: object) -> Fault:
    return Fault(say(), "", "start_failed", 0, words=words, advice=advice, given=given, **more)  # type: ignore[arg-type]


def command(line: str) -> Record:
    """The model asks for a command, which Codex runs as a child of its own."""
    return {"steps": [{"call": "exec_command", "arguments": {"cmd": line, "yield_time_ms": 30_000}}, say()]}


def provider_at(url: str) -> tuple[str, ...]:
    table = {"name": "test", "base_url": url, "wire_api": "responses"}
    settings = (f"model_providers.test.{key}={json.dumps(each)}" for key, each in table.items())
    return tuple(part for each in ('model_provider="test"', *settings) for part in ("-c", each))


FAULTS: Mapping[str, Fault] = {
    "bad -c": start_failed(
        ("-c", "model_reasoning_effort=[]"),
        "Error: invalid type: sequence",
        fixed=("-c", "model_reasoning_effort=low"),
    ),
    "CODEX_HOME missing": start_failed(OPENAI, "that path does not exist", home=Path.exists),
    "no app-server": start_failed(
        ("--codex-bin", "/bin/false", *PLAYBOOK),
        "ended with exit code 1",
        advice="",
        fixed=("--codex-bin", str(find_codex(None, {}))),
    ),
    "connection refused": Fault(
        {},
        "failed",
        "unreachable",
        words="Connection failed",
        advice="Check the network and the provider's base_url",
        given=provider_at("http://127.0.0.1:1/v1"),
    ),
    "server accepts and sends nothing": Fault(
        {"fault": {"stall_seconds": 600, "after_events": 0}}, "stalled", "stalled", words="0.6 s", limits=IMPATIENT
    ),
    "insufficient quota": Fault(
        {"fault": {"code": "insufficient_quota"}}, "failed", "quota", 1, 5, words="Quota exceeded"
    ),
    "401": Fault(
        {"fault": {"status": 401}},
        "failed",
        "unauthorized",
        1,
        words="HTTP status 401",
        advice="`codex-multi-role codex login`",
    ),
    "empty answer": Fault(
        {"fault": {"empty": True}},
        "invalid_reply",
        "empty_answer",
        words="The answer was empty",
        advice="--repair-attempts",
    ),
    "kill -9 of the child mid-turn": Fault(
        command("kill -9 $PPID"), "crashed", "crashed", words="ended with signal 9 (Killed)"
    ),
    "SIGSTOP of the child while its prompt is written": Fault(
        say(),
        "stalled",
        "stalled",
        words="Codex accepted no input for 0.3 s",
        advice="keeps Codex from running",
        arrange=stop_in_the_middle_of_a_prompt,
        prompt=LARGER_THAN_THE_PIPE,
    ),
    "a turn without an end": Fault(
        command("while :; do echo on; sleep 0.1; done"),
        "timed_out",
        "timed_out",
        1,
        words="longer than 1 s",
        advice="limits.turn_seconds",
        limits={"idle_seconds": 20, "turn_seconds": 1},
    ),
}
