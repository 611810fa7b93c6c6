"""What a run may use at most: reserved before a turn begins, counted once however often the run is resumed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from codex_multi_role.errors import BudgetUsedUp

MORE = "Raise the limit and `codex-multi-role resume` the run; no finished turn is paid for again."


@dataclass(frozen=True)
class Limits:
    """``--max-turns``, ``--max-tokens``, ``--max-seconds``; None is no limit."""

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None


class Budget:
    """Counts what is used against the limits. The ledger of earlier sessions is what their ``turn.json`` say.

    ``seconds`` are those the run was worked on, by all its sessions.
    """

    def __init__(self, limits: Limits, ledger: Iterable[tuple[str, Mapping[str, Any]]], seconds: float) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._turns: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._began = time.monotonic() - seconds
        for role, turn in ledger:
            self._turns[role] += 1
            self._tokens[role] += sum(turn.get("tokens", {}).values())

    def reserve_turn(self, role: str) -> None:
        """Take one turn before it begins. Raises `BudgetUsedUp` when there is none left."""
        with self._lock:
            seconds = time.monotonic() - self._began
            self._check("turns", self._turns.total(), self._limits.turns, self._turns)
            self._check("tokens", self._tokens.total(), self._limits.tokens, self._tokens)
            self._check("seconds", seconds, self._limits.seconds, Counter())
            self._turns[role] += 1

    def spend_tokens(self, role: str, tokens: int) -> None:
        with self._lock:
            self._tokens[role] += tokens

    def _check(self, what: str, used: float, limit: float | None, ledger: Counter[str]) -> None:
        if limit is None or used < limit:
            return
        where = ", ".join(f"{role} {count:,}" for role, count in ledger.most_common())
        went = f": {where}" if where else ""
        raise BudgetUsedUp(f"{used:,.0f} of {limit:,.0f} {what} are used{went}", MORE)
