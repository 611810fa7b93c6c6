"""The search itself, on scripted results: how many executions it takes, and which border it names."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from codex_multi_role.extensions.results.bisecting import MAX_EXECUTIONS, Bisection, Outcome, bisect_states

FLIPPED: dict[Outcome, Outcome] = {"pass": "fail", "fail": "pass"}


def changing_at(first: int, before: Outcome = "pass", after: Outcome = "fail") -> Callable[[int], Outcome]:
    return lambda state: after if state >= first else before


def border(found: Bisection) -> tuple[int, int]:
    return found.before, found.after


def enough(count: int) -> int:
    """The executions that find one of the changes between ``count`` states."""
    return math.ceil(math.log2(count - 1)) + 1


@pytest.mark.parametrize("count", range(2, 34))
def test_every_change_is_found_in_few_executions(count: int) -> None:
    for first in range(count):
        executed: Counter[int] = Counter()

        def execute(state: int, first: int = first, executed: Counter[int] = executed) -> Outcome:
            executed[state] += 1
            return changing_at(first)(state)

        found = bisect_states(count, execute, repeat=1)
        assert border(found) == (first - 1, first)
        assert found.executions <= enough(count)
        assert found.executions + found.confirmations == executed.total() <= enough(count) + (first < 2)
        assert (found.last, found.changed, found.is_flaky) == ("fail", first > 0, False)
        assert executed.keys() >= {first, max(first - 1, 0)}, "executed before it is named"


def test_states_at_the_border_are_repeated() -> None:
    executed: Counter[int] = Counter()

    def execute(state: int) -> Outcome:
        executed[state] += 1
        return changing_at(9, "fail", "pass")(state)

    found = bisect_states(16, execute, repeat=4)
    assert (border(found), found.last) == ((8, 9), "pass")
    assert (executed[8], executed[9]) == (4, 4)
    assert (found.executions, found.confirmations) == (5, 6)


def test_unchanged_result_is_confirmed_at_both_ends() -> None:
    executed: Counter[int] = Counter()

    def execute(state: int) -> Outcome:
        executed[state] += 1
        return "fail"

    found = bisect_states(8, execute, repeat=3)
    assert (border(found), found.changed) == ((-1, 0), False)
    assert (executed[0], executed[7]) == (3, 3)


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 20_000), marks=pytest.mark.long)])
def test_change_is_found_despite_wrong_results(seeds: range) -> None:
    wrong = []
    for seed in seeds:
        rng = random.Random(seed)
        count = rng.randint(2, 60)
        first = rng.randrange(1, count)
        before: Outcome = rng.choice(("pass", "fail"))
        right = changing_at(first, before, FLIPPED[before])

        def execute(state: int, rng: random.Random = rng, right: Callable[[int], Outcome] = right) -> Outcome:
            return FLIPPED[right(state)] if rng.random() < 0.1 else right(state)

        found = bisect_states(count, execute, repeat=5)
        wrong += [seed] if border(found) != (first - 1, first) else []
        assert found.executions <= enough(count)
    assert len(wrong) <= len(seeds) / 4000, wrong


def test_result_without_a_majority_is_unknown() -> None:
    outcomes: Counter[int] = Counter()

    def execute(state: int) -> Outcome:
        outcomes[state] += 1
        return changing_at(5)(state) if state != 5 or outcomes[5] % 2 else "pass"

    found = bisect_states(8, execute, repeat=2)
    assert (border(found), found.is_flaky, found.last) == ((4, 6), True, "fail")
    assert outcomes[5] == MAX_EXECUTIONS


def test_states_that_cannot_be_judged_widen_the_border() -> None:
    for first in range(1, 11):
        for left_out in ({first}, {first - 1, first}, {3, 4, 5}, {*range(11)}):

            def execute(state: int, first: int = first, left_out: set[int] = left_out) -> Outcome | None:
                return None if state in left_out else changing_at(first)(state)

            found = bisect_states(12, execute, repeat=2)
            judged = sorted({*range(12)} - left_out)
            assert found.after == next(each for each in judged if each >= first)
            assert found.before == max([each for each in judged if each < first], default=-1)


def test_last_state_that_cannot_be_judged_ends_the_search() -> None:
    found = bisect_states(12, lambda _: "unknown", repeat=3)
    assert (found.last, found.changed, found.executions, found.confirmations) == ("unknown", False, 1, 0)
