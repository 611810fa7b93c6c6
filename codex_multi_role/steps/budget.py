"""Limits of what a run may use: reserved before a turn starts, counted once however often the run is resumed.

Time counts while the run is worked on, not while it is parked.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.errors import BudgetUsedUp


class WorkClock:
    """Counts seconds, starting from those of the sessions ``before``.

    It stands still while the run waits for a person and no turn is running: the time of a person is not the run's, and
    nothing is spent meanwhile. A turn that itself waits for the answer does not count as running, and neither does a
    check that runs beside a question.
    """

    def __init__(self, before: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._counted = before
        self._since = now()
        self._turns = 0
        self._waits = 0

    @property
    def seconds(self) -> float:
        with self._lock:
            self._count()
            return self._counted

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Around a running turn."""
        self._change(turns=1)
        try:
            yield
        finally:
            self._change(turns=-1)

    @contextmanager
    def person(self, *, within_turn: bool = False) -> Iterator[None]:
        """Around the wait for a person's answer."""
        turns = -1 if within_turn else 0
        self._change(turns=turns, waits=1)
        try:
            yield
        finally:
            self._change(turns=-turns, waits=-1)

    def _change(self, turns: int = 0, waits: int = 0) -> None:
        with self._lock:
            self._count()
            self._turns += turns
            self._waits += waits

    def _count(self) -> None:
        """Add the time since the last change, if the clock was running."""
        now = self._now()
        if self._turns or not self._waits:
            self._counted += now - self._since
        self._since = now


MORE = "Raise the limit and `codex-multi-role resume` the run; finished turns are not repeated."


@dataclass(frozen=True)
class Limits:
    """``--max-turns``, ``--max-tokens``, ``--max-seconds``; None means unlimited."""

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None


class Budget:
    """Counts usage against the limits. The ledger of earlier sessions is read from their ``turn.json``.

    What runs on workers use, which items of this run became, is counted under their run IDs.

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
        self._reserved: set[str] = set()
        for role, turn in ledger:
            self._turns[role] += turn.get("turns", 1)
            self._tokens[role] += TokenUsage.of_record(turn.get("tokens", {})).total
            self._seconds[role] += turn.get("seconds", 0.0)

    def reserve_turn(self, role: str) -> None:
        """Reserve one turn before it starts. Raises `BudgetUsedUp` if none is left."""
        with self._lock:
            self._require_rest()
            self._turns[role] += 1

    def spend(self, role: str, usage: TokenUsage, seconds: float) -> None:
        """Count what a turn used."""
        with self._lock:
            self._tokens[role] += usage.total
            self._seconds[role] += seconds

    def reserve_share(self, run_id: str, peers: int, worked_seconds: float = 0.0) -> Limits:
        """Reserve turns and tokens for a run on workers: its share of what is left, with ``peers`` of them at once.

        Returns the limits of that run, which include what it has spent and ``worked_seconds``. All of them have the
        time that is left. Raises `BudgetUsedUp` if nothing is left.
        """
        with self._lock:
            self._require_rest()
            others = max(1, peers - len(self._reserved - {run_id}))
            turns = _extended(self._turns, run_id, self._limits.turns, others)
            tokens = _extended(self._tokens, run_id, self._limits.tokens, others)
            self._reserved.add(run_id)
            seconds = self._limits.seconds
            return Limits(turns, tokens, None if seconds is None else worked_seconds + seconds - self._clock.seconds)

    def count_elsewhere(self, run_id: str, turns: int, tokens: int, *, is_reserved: bool) -> None:
        """Count what a run on workers may use, or has used, instead of what was counted for it before."""
        with self._lock:
            self._turns[run_id], self._tokens[run_id] = turns, tokens
            (self._reserved.add if is_reserved else self._reserved.discard)(run_id)

    @property
    def is_shared(self) -> bool:
        """Whether something is reserved for runs on workers, which may leave some of it."""
        return bool(self._reserved)

    def doubt(self) -> bool:
        """Note that a provider's counts are unreliable; returns whether this is the first time."""
        with self._lock:
            first, self._doubted = not self._doubted, True
            return first

    def _require_rest(self) -> None:
        self._check("turns", self._turns.total(), self._limits.turns, self._turns)
        self._check("tokens", self._tokens.total(), self._limits.tokens, self._tokens)
        self._check("seconds", self._clock.seconds, self._limits.seconds, self._seconds)

    def _check(self, what: str, used: float, limit: float | None, ledger: Mapping[str, float]) -> None:
        if limit is None or used < limit:
            return
        where = ", ".join(f"{role} {count:,.0f}" for role, count in sorted(ledger.items(), key=lambda each: -each[1]))
        went = f": {where}" if where else ""
        raise BudgetUsedUp(f"{used:,.0f} of {limit:,.0f} {what} are used{went}", MORE)


def _extended(ledger: Counter[str], run_id: str, limit: int | None, others: int) -> int | None:
    """Add the run's share of what is left to what it has in the ledger; returns the sum."""
    if limit is None:
        return None
    ledger[run_id] += max(1, (limit - ledger.total()) // others)
    return ledger[run_id]
