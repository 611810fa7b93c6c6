"""What turns cost, in US dollars: the only place that adds it up, records it and writes it in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from codex_multi_role.reading.json_types import Json

SMALLEST_DOLLARS = 0.0001
"""Smaller amounts are not shown as a figure."""
DECIMALS = 9
"""Dollars and seconds are compared with so many: sums of floats are off by less."""


@dataclass(frozen=True)
class Cost:
    """``amount``: of the turns whose model has a price; ``unpriced_turns`` have none, or no recorded cost."""

    amount: Decimal = Decimal(0)
    unpriced_turns: int = 0

    @classmethod
    def of(cls, amount: Decimal | float | None, turns: int = 1) -> Cost:
        """The cost of that many turns; None: they have no price."""
        # A float is recorded as its shortest text, which is the decimal number that was meant.
        return cls(unpriced_turns=turns) if amount is None else cls(Decimal(str(amount)))

    @classmethod
    def of_turn(cls, turn: Mapping[str, Any]) -> Cost:
        """As in ``turn.json``; earlier versions recorded none."""
        return cls.of(turn.get("cost"))

    @classmethod
    def of_totals(cls, totals: Mapping[str, Any]) -> Cost:
        """As in the totals of ``run.json``; earlier versions recorded none."""
        return cls.of(totals.get("cost"), int(totals.get("unpriced_turns") or totals.get("turns") or 0))

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.amount + other.amount, self.unpriced_turns + other.unpriced_turns)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.amount - other.amount, self.unpriced_turns - other.unpriced_turns)

    @property
    def known(self) -> Decimal | None:
        """The whole amount; None if any turn has no price: a sum never leaves some out."""
        return None if self.unpriced_turns else self.amount

    def as_json(self) -> Json:
        return {"cost": as_number(self.known), "unpriced_turns": self.unpriced_turns}


def as_number(amount: Decimal | None) -> float | None:
    """As it is recorded; None for an unknown amount."""
    return None if amount is None else float(amount)


def exceeds(amount: float, most: float) -> bool:
    """Whether a sum of dollars, or of what else a total limits, is more than ``most``."""
    return round(amount - most, DECIMALS) > 0


def dollars(amount: Decimal | float) -> str:
    """``$1,204.50``, ``$0.25``, ``$0.0042``, ``<$0.0001``: only nothing is ``$0.00``."""
    if 0 < amount < SMALLEST_DOLLARS:
        return f"<${SMALLEST_DOLLARS}"
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.4f}".removesuffix("00")
