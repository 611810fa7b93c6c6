"""Sums of money."""

from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.run_folder.cost import Cost, as_number

AMOUNTS = st.decimals(0, 900_000, places=9)


@given(st.lists(AMOUNTS | st.none(), max_size=8))
def test_sum_is_exact_or_says_what_it_lacks(amounts: list[Decimal | None]) -> None:
    turns = [json.loads(json.dumps({"cost": as_number(amount)})) for amount in amounts]
    cost = sum(map(Cost.of_turn, turns), Cost())
    assert cost.unpriced_turns == amounts.count(None)
    assert cost.known == (None if None in amounts else sum(amount for amount in amounts if amount is not None))


def test_totals_are_read_as_they_were_written() -> None:
    for cost in (Cost(), Cost(Decimal("1.25")), Cost(unpriced_turns=3)):
        assert Cost.of_totals({"turns": 5, **cost.as_json()}) == cost
    assert Cost(Decimal(1), 2).as_json() == {"cost": None, "unpriced_turns": 2}


def test_what_an_earlier_version_recorded_is_unpriced() -> None:
    assert Cost.of_turn({"tokens": {"input": 3}}) == Cost(unpriced_turns=1)
    assert Cost.of_totals({"turns": 5}) == Cost(unpriced_turns=5)
    assert Cost.of_totals({}) == Cost()
