"""Deadlines for runs that have to wait them out: shorter than the package's, and the silence that they allow.

These are fixed in the package, and long; waited out, each would make a run with a lost message half a minute longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from codex_multi_role.codex import child, client, running_turn, thread
from codex_multi_role.steps import recovery

START_SECONDS = 5.0
"""For each of the requests that a process is started with: ``initialize``, ``account/read``, ``thread/start``."""
STARTING_REQUESTS = 4
REQUEST_SECONDS = 3.0
INTERRUPT_SECONDS = 2.0
WRITE_SECONDS = 3.0
SLACK_SECONDS = 30.0


def lower(module: ModuleType, name: str, seconds: float) -> None:
    """Give the deadline ``name`` of ``module`` fewer seconds. Raises AssertionError if it would not be fewer."""
    assert vars(module)[name] > seconds
    setattr(module, name, seconds)


def lower_deadlines() -> None:
    lower(client, "INITIALIZE_SECONDS", START_SECONDS)
    lower(thread, "THREAD_SECONDS", START_SECONDS)
    lower(client, "REQUEST_SECONDS", REQUEST_SECONDS)
    lower(running_turn, "INTERRUPT_SECONDS", INTERRUPT_SECONDS)
    lower(child, "WRITE_SECONDS", WRITE_SECONDS)
    lower(recovery, "FIRST_PAUSE_SECONDS", 0.1)


def longest_silence(limits: Mapping[str, float]) -> float:
    """The most seconds between two events: a process is replaced, its thread opened, a turn taken and ended."""
    ending = INTERRUPT_SECONDS + REQUEST_SECONDS + WRITE_SECONDS
    return STARTING_REQUESTS * START_SECONDS + limits["turn_seconds"] + ending + SLACK_SECONDS
