"""Upper bounds of work, added up: in sequence, repeated, or in parallel."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

MOST_AT_ONCE = 64
"""Maximum number of items of a fan-out that run at once."""


@dataclass(frozen=True)
class Effort:
    """``turns`` without repairs and without those ``continued``, ``seconds`` of declared deadlines.

    ``records``: steps of the journal. ``one_by_one``: the seconds if nothing ran in parallel. ``own``: the roles asked
    on the walk's own processes, one each. ``fan_out``: by role, how many additional processes its fan-outs use at once.
    """

    turns: int = 0
    continued: int = 0
    seconds: float = 0.0
    one_by_one: float = 0.0
    records: int = 0
    own: frozenset[str] = frozenset()
    fan_out: Counter[str] = field(default_factory=Counter)

    @property
    def processes(self) -> Counter[str]:
        """All processes used at once, by role. A walk keeps its own ones while it fans out."""
        return Counter(self.own) + self.fan_out

    def then(self, other: Effort) -> Effort:
        """This work, then the other on the same processes."""
        return Effort(
            self.turns + other.turns,
            self.continued + other.continued,
            self.seconds + other.seconds,
            self.one_by_one + other.one_by_one,
            self.records + other.records,
            self.own | other.own,
            self.fan_out | other.fan_out,
        )

    def repeated(self, times: int) -> Effort:
        """This work ``times`` times in sequence."""
        return replace(
            self,
            turns=self.turns * times,
            continued=self.continued * times,
            seconds=self.seconds * times,
            one_by_one=self.one_by_one * times,
            records=self.records * times,
        )

    def fanned_out(self, items: int, at_once: int | None) -> Effort:
        """This work for each of ``items``, ``at_once`` in parallel; if that is None, each figure has its own worst."""
        width = max(1, min(items, MOST_AT_ONCE if at_once is None else at_once))
        return Effort(
            self.turns * items,
            self.continued * items,
            self.seconds * (items if at_once is None else math.ceil(items / width)),
            self.one_by_one * items,
            self.records * items,
            fan_out=Counter({role: width * number for role, number in self.processes.items()}),
        )
