"""One limit on what a run or one of its roles may use, and the message when it is reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.errors import LOOK, BudgetUsedUp
from codex_multi_role.run_folder.cost import dollars

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
