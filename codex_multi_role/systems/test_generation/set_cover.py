"""Select the fewest tests that reach everything that many tests reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping


def smallest_cover(reaches: Mapping[str, frozenset[Hashable]]) -> list[str]:
    """The tests to keep, in the order of ``reaches``: together they reach everything that all tests do.

    Greedy: take the test that reaches most of what is missing, the first of equal ones, until nothing is; then remove
    the tests that others made redundant, the last one taken first. The true minimum is not searched for, because that
    takes exponential time.
    """
    missing = frozenset[Hashable]().union(*reaches.values())
    taken: list[str] = []
    while missing:
        best = max(reaches, key=lambda test: len(reaches[test] & missing))
        taken.append(best)
        missing -= reaches[best]
    reached_by = Counter(each for test in taken for each in reaches[test])
    for test in reversed(taken.copy()):
        if all(reached_by[each] > 1 for each in reaches[test]):
            taken.remove(test)
            reached_by.subtract(reaches[test])
    return [test for test in reaches if test in taken]
