"""A promise broken on purpose: one change of the package, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.promises.change import Change

Broken = Mapping[str, tuple[Change, *tuple[str, ...]]]
"""By the clause that no longer holds: the change, and the tests that must notice it."""


@dataclass(frozen=True)
class Breakage:
    """``clause`` of the ``promise`` (its number in the design) no longer holds after the ``change``.

    ``tests`` are pytest's ids below ``tests/``; each of them must fail then.
    """

    promise: int
    clause: str
    change: Change
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.promise}. {self.clause}"

    def ids(self) -> list[str]:
        return [f"tests/{test}" for test in self.tests]


def breakages(promise: int, broken: Broken) -> tuple[Breakage, ...]:
    return tuple(Breakage(promise, clause, change, tuple(tests)) for clause, (change, *tests) in broken.items())
