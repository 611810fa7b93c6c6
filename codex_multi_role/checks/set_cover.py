"""The fewest tests that reach all that many reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping


def smallest_cover(reaches: Mapping[str, frozenset[Hashable]]) -> list[str]:
    """The tests to keep, in the order of ``reaches``: together they reach whatever all of them do.

    Greedy: again and again the test that reaches most of what is missing, the first of those equal; at the end, the
    one taken last first, those go that the others have made needless. The smallest set of all is not looked for: that
    is a problem that takes exponential time.
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
