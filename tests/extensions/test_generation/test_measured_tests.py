from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.extensions.test_generation.measured_tests import smallest_cover

REACHES = st.dictionaries(st.text("abc", min_size=1), st.frozensets(st.integers(0, 12)), max_size=9)


@given(REACHES)
def test_nothing_is_lost_and_nobody_is_needless(reaches: dict[str, frozenset[int]]) -> None:
    kept = smallest_cover({test: frozenset(reached) for test, reached in reaches.items()})
    assert kept == [test for test in reaches if test in kept]
    everything = frozenset[int]().union(*reaches.values())
    assert frozenset[int]().union(*(reaches[test] for test in kept)) == everything
    for test in kept:
        assert frozenset[int]().union(*(reaches[other] for other in kept if other != test)) != everything


def test_first_of_those_equal_is_kept() -> None:
    assert smallest_cover({"a": frozenset({1, 2}), "b": frozenset({2, 1}), "c": frozenset({3})}) == ["a", "c"]


def test_what_the_others_made_needless_goes() -> None:
    greedy = {"most": frozenset({1, 2, 3, 4}), "left": frozenset({1, 2, 5}), "right": frozenset({3, 4, 6})}
    assert smallest_cover(greedy) == ["left", "right"]
