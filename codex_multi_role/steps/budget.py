"""Limits of what a run may use: turns are reserved before they start, and what they use is counted as they use it.

Everything counts once, however often the run is resumed.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.codex.usage import TokenUsage, tokens_by_model
from codex_multi_role.errors import LOOK, BudgetUsedUp
from codex_multi_role.run_folder.cost import Cost, dollars
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.work_clock import WorkClock

Price = Callable[[str, TokenUsage], Decimal | None]
"""What a model's provider charges, in dollars; None if no price is known."""


@dataclass(frozen=True)
class Limits:
    """``--max-turns``, ``--max-tokens``, ``--max-seconds``, and dollars; None means unlimited."""

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: Decimal | None = None


class Budget:
    """Counts usage against the limits. The ledger of earlier sessions is read from their ``turn.json``.

    ``clock`` counts the seconds that all sessions worked on the run; turns that run in parallel share them.
    ``exceeded`` is set, permanently, by the model request that exceeds a limit: it ends all running turns.
    """

    def __init__(
        self,
        limits: Limits,
        ledger: Iterable[tuple[str, Mapping[str, Any]]],
        clock: WorkClock,
        price: Price = lambda model, usage: None,
    ) -> None:
        self._limits = limits
        self._lock = threading.Lock()  # waits: for memory only
        self._turns: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._cost: dict[str, Decimal] = defaultdict(Decimal)
        self._seconds: dict[str, float] = defaultdict(float)
        self._clock = clock
        self._price = price
        self._unpriced: dict[str, set[str]] = defaultdict(set)
        self.exceeded = CancellationToken()
        self._exceeded: Callable[[], BudgetUsedUp] | None = None
        for role, turn in ledger:
            self._turns[role] += turn.get("turns", 1)
            self._add_recorded(role, turn)
            self._seconds[role] += turn.get("seconds", 0.0)

    def require_prices(self, role: RoleSpec, model: str) -> None:
        """Raise `BudgetUsedUp` if a limit in money applies, and a price that it needs is unknown.

        A limit of the run needs the prices of ``model`` and of all earlier turns, one of the role those of its own.
        """
        with self._lock:
            known = self._price(model, TokenUsage()) is not None
            if unknown := self._missing_prices(role, frozenset() if known else frozenset({model})):
                raise _prices_missing(unknown)

    def reserve_turn(self, role: RoleSpec) -> None:
        """Reserve one turn before it starts. Raises `BudgetUsedUp` if none is left."""
        with self._lock:
            used_up = (partial(self._error, cap) for cap in self._caps(role) if cap.is_used_up())
            if (error := self._exceeded or next(used_up, None)) is not None:
                raise error()
            self._turns[role.name] += 1

    def spend(self, role: RoleSpec, model: str, usage: TokenUsage) -> None:
        """Count what a running turn used for a request to ``model``.

        Sets `exceeded` if that is more than was left, or if a limit in money applies and ``model`` has no price.
        """
        with self._lock:
            self._tokens[role.name] += usage.total
            self._add_cost(role.name, model, self._price(model, usage))
            self._exceeded = self._exceeded or self._excess(role)
        if self._exceeded is not None:
            self.exceeded.set()

    def note_unknown_usage(self, role: RoleSpec) -> None:
        """Admit no further turn if a limit in tokens or money applies to ``role``, whose turn could not be counted.

        Running turns continue.
        """
        with self._lock:
            if self._exceeded is None and any(cap.what in (TOKENS, DOLLARS) for cap in self._caps(role)):
                self._exceeded = partial(_usage_unknown, role.name)

    def spend_seconds(self, role: str, seconds: float) -> None:
        """Count the time of a turn that has ended."""
        with self._lock:
            self._seconds[role] += seconds

    @property
    def seconds_left(self) -> float:
        """How long a turn may run that starts now."""
        return math.inf if self._limits.seconds is None else self._limits.seconds - self._clock.seconds

    def interruption(self) -> BudgetUsedUp | None:
        """Why running turns are interrupted, if they are: which limit was exceeded, or that the time is used up."""
        with self._lock:
            if self._exceeded is None and self.seconds_left <= 0:
                self._exceeded = next(partial(self._error, cap) for cap in self._caps() if cap.what == SECONDS)
            return self._exceeded() if self._exceeded else None

    def _excess(self, role: RoleSpec) -> Callable[[], BudgetUsedUp] | None:
        if unknown := self._missing_prices(role):
            return partial(_prices_missing, unknown)
        used_up = (cap for cap in self._caps(role) if cap.what in (TOKENS, DOLLARS) and cap.is_exceeded())
        return next((partial(self._error, cap) for cap in used_up), None)

    def _error(self, cap: Cap) -> BudgetUsedUp:
        """The error for ``cap``; it suggests to raise all limits of the run that are used up."""
        return cap.error(" ".join(["resume RUN", *(each.higher for each in self._caps() if each.is_used_up())]))

    def _missing_prices(self, role: RoleSpec, more: frozenset[str] = frozenset()) -> frozenset[str]:
        """The models without a price, ``more`` included, that a limit in money would have to count."""
        limits = [cap for cap in self._caps(role) if cap.what == DOLLARS]
        if not limits:
            return frozenset()
        is_of_run = any(cap.role is None for cap in limits)
        return more.union(*self._unpriced.values()) if is_of_run else more | self._unpriced[role.name]

    def _add_recorded(self, role: str, turn: Mapping[str, Any]) -> None:
        """Count a turn of an earlier session at what it cost then; without a recorded cost, at the current prices."""
        known = Cost.of_turn(turn).known
        for name, tokens in tokens_by_model({"tokens": {}, **turn}).items():
            usage = TokenUsage.of_record(tokens)
            self._tokens[role] += usage.total
            if known is None and usage.total:
                self._add_cost(role, name or role, self._price(name, usage))
        if known is not None:
            self._cost[role] += known

    def _add_cost(self, role: str, model: str, cost: Decimal | None) -> None:
        if cost is None:
            self._unpriced[role].add(model)
        else:
            self._cost[role] += cost

    def _caps(self, role: RoleSpec | None = None) -> Iterator[Cap]:
        """The limits of the run, and those of ``role`` itself."""
        most, clock = self._limits, self._clock
        ledgers: dict[str, Mapping[str, Amount]] = {TURNS: self._turns, TOKENS: self._tokens, DOLLARS: self._cost}
        for what, limit in ((TURNS, most.turns), (TOKENS, most.tokens), (DOLLARS, most.cost)):
            if limit is not None:
                yield Cap(what, limit, partial(sum, ledgers[what].values()), ledgers[what])
        if most.seconds is not None:
            yield Cap(SECONDS, most.seconds, lambda: clock.seconds, self._seconds)
        if role is not None:
            for what, key in ROLE_KEYS.items():
                if (own := getattr(role.limits, key)) is not None:
                    yield Cap(what, own, partial(_of_role, ledgers[what], role.name), ledgers[what], role)


def _of_role(ledger: Mapping[str, Amount], name: str) -> Amount:
    return ledger.get(name, 0)


def _prices_missing(models: Iterable[str]) -> BudgetUsedUp:
    return BudgetUsedUp(
        f"a maximum cost needs the price of each model; it is missing for {', '.join(sorted(models))}",
        "Resume the run with a price list that has it (--prices FILE).",
        LOOK,
    )


def _usage_unknown(role: str) -> BudgetUsedUp:
    return BudgetUsedUp(
        f"a limit in tokens or money needs all token counts; the provider of role {role} reported none or invalid ones",
        "Start another run that limits turns or seconds instead (--max-turns, --max-seconds, limits.max_turns of a "
        "role). `codex-multi-role resume RUN` asks one more turn.",
    )


TURNS, TOKENS, DOLLARS, SECONDS = "turns", "tokens", "dollars", "seconds"
ROLE_KEYS = {TURNS: "max_turns", TOKENS: "max_tokens", DOLLARS: "max_cost"}
"""The keys of a role's own limits."""
MORE = "Resume the run with a higher limit; finished turns are not repeated."

Amount = int | float | Decimal


@dataclass(frozen=True)
class Cap:
    """``most`` of ``what`` may be used; ``used`` returns how much is. ``ledger``: the amounts by role.

    ``role``: whose own limit it is; None for a limit of the run.
    """

    what: str
    most: Amount
    used: Callable[[], Amount]
    ledger: Mapping[str, Amount]
    role: RoleSpec | None = None

    def is_used_up(self) -> bool:
        return self.used() >= self.most

    def is_exceeded(self) -> bool:
        return self.used() > self.most

    @property
    def higher(self) -> str:
        """The option that lets the run use as much again, and at least a minute, because its end takes time as well."""
        used, more = Decimal(self.used()), Decimal(max(self.most, 60) if self.what == SECONDS else self.most)
        limit, cents = math.ceil(used + more), math.ceil((used + more) * 100)
        return f"--max-cost {cents / 100:.2f}" if self.what == DOLLARS else f"--max-{self.what} {limit}"

    def error(self, suggestion: str) -> BudgetUsedUp:
        """Which limit, how much of it is used, by whom, and where to raise it; ``suggestion``: for one of the run."""
        what = "" if self.what == DOLLARS else f" {self.what}"
        used = f"{self._words(self.used())} of {self._words(self.most)}{what} are used"
        if self.role is not None:
            return BudgetUsedUp(f"{used}, the limit of role {self.role.name}", self._hint(self.role), LOOK)
        shares = sorted(self.ledger.items(), key=lambda each: -each[1])
        where = ", ".join(f"{role} {self._words(amount)}" for role, amount in shares)
        return BudgetUsedUp(f"{used}: {where}" if where else used, MORE, suggestion)

    def _hint(self, role: RoleSpec) -> str:
        file = role.source.name  # a resumed run reads its own copy, which is not the file to edit
        return (
            f"Raise limits.{ROLE_KEYS[self.what]} of role {role.name} in your {file}, and resume the run "
            "with the folder of that file as --roles; finished turns are not repeated."
        )

    def _words(self, amount: Amount) -> str:
        return dollars(amount) if self.what == DOLLARS else f"{amount:,.0f}"
