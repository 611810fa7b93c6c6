"""Limits of what a run may use: reserved before a turn starts, counted once however often the run is resumed."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from codex_multi_role.errors import BudgetUsedUp
from codex_multi_role.steps.work_clock import WorkClock

MORE = "Raise the limit and `codex-multi-role resume` the run; no finished turn is paid for again."


@dataclass(frozen=True)
class Limits:
    """``--max-turns``, ``--max-tokens``, ``--max-seconds``; None means unlimited."""

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None


class Budget:
    """Counts usage against the limits. The ledger of earlier sessions is read from their ``turn.json``.

    ``clock`` counts the seconds that all sessions worked on the run; turns that run in parallel share them.
    """

    def __init__(self, limits: Limits, ledger: Iterable[tuple[str, Mapping[str, Any]]], clock: WorkClock) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._turns: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._doubted = False
        for role, turn in ledger:
            self._turns[role] += 1
            self._tokens[role] += sum(max(count, 0) for count in turn.get("tokens", {}).values())
            self._seconds[role] += turn.get("seconds", 0.0)

    def reserve_turn(self, role: str) -> None:
        """Reserve one turn before it starts. Raises `BudgetUsedUp` if none is left."""
        with self._lock:
            self._check("turns", self._turns.total(), self._limits.turns, self._turns)
            self._check("tokens", self._tokens.total(), self._limits.tokens, self._tokens)
            self._check("seconds", self._clock.seconds, self._limits.seconds, self._seconds)
            self._turns[role] += 1

    def spend(self, role: str, tokens: int, seconds: float) -> None:
        """Count what a turn used."""
        with self._lock:
            self._tokens[role] += tokens
            self._seconds[role] += seconds

    def doubt(self) -> bool:
        """Note that a provider's counts are unreliable; returns whether this is the first time."""
        with self._lock:
            first, self._doubted = not self._doubted, True
            return first

    def _check(self, what: str, used: float, limit: float | None, ledger: Mapping[str, float]) -> None:
        if limit is None or used < limit:
            return
        where = ", ".join(f"{role} {count:,.0f}" for role, count in sorted(ledger.items(), key=lambda each: -each[1]))
        went = f": {where}" if where else ""
        raise BudgetUsedUp(f"{used:,.0f} of {limit:,.0f} {what} are used{went}", MORE)
