"""The points at which a run is killed: the N-th place of a kind that the orchestrator passes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import NamedTuple, Self

KINDS = ("journal", "wire", "files", "children")


class Point(NamedTuple):
    """``number`` counts from 1. Threads race, so from one run to the next a point's place may move by a few."""

    kind: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """``KIND:N``. Raises ValueError."""
        kind, _, number = text.partition(":")
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
        return cls(kind, int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


def choose(counts: Mapping[str, int], kinds: Iterable[str], most: int | None, seed: int) -> list[Point]:
    """``most`` points (None: all there are) in an order that ``seed`` decides, the kinds by turns."""
    by_kind = [[Point(kind, number) for number in range(1, counts[kind] + 1)] for kind in kinds]
    shuffler = random.Random(seed)
    for points in by_kind:
        shuffler.shuffle(points)
    by_turns = chain.from_iterable(zip_longest(*by_kind))
    return [point for point in by_turns if point is not None][:most]
