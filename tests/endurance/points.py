"""The points at which a fault strikes: the N-th place of a kind that a run passes, or the N-th seed of a profile."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple, Self


class Point(NamedTuple):
    """``number`` counts from 1. Threads race, so from one run to the next a point's place may move by a few."""

    kind: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """``KIND:N``. Raises ValueError."""
        kind, _, number = text.partition(":")
        return cls(kind, int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


class Points(tuple[Point, ...]):
    """The first point is the run's, the second that of the process that resumes it, and so on."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """``KIND:N``, further ones after a ``+``. Raises ValueError."""
        return cls(Point.parse(point) for point in text.split("+"))

    def __str__(self) -> str:
        return "+".join(map(str, self))


def choose(counts: Mapping[str, int], kinds: Iterable[str], most: int | None, seed: int) -> list[Points]:
    """``most`` single points (None: all there are) in an order that ``seed`` decides, the kinds by turns."""
    by_kind = [[Point(kind, number) for number in range(1, counts[kind] + 1)] for kind in kinds]
    shuffler = random.Random(seed)
    for points in by_kind:
        shuffler.shuffle(points)
    by_turns = chain.from_iterable(zip_longest(*by_kind))
    return [Points([point]) for point in by_turns if point is not None][:most]


def choose_pairs(counts: Mapping[str, int], kinds: Sequence[str], number: int, seed: int) -> list[Points]:
    """``number`` pairs that ``seed`` decides; the second point is one that the resumed run is likely to come to."""
    chooser = random.Random(seed)
    pairs = []
    for _ in range(number):
        first = _any_point(counts, kinds, chooser, 1.0)
        left = 1.0 - first.number / counts[first.kind]
        pairs.append(Points([first, _any_point(counts, kinds, chooser, left)]))
    return pairs


def _any_point(counts: Mapping[str, int], kinds: Sequence[str], chooser: random.Random, share: float) -> Point:
    """Among the first ``share`` of what there is of a kind."""
    kind = chooser.choice(kinds)
    return Point(kind, chooser.randint(1, max(1, math.ceil(counts[kind] * share))))
