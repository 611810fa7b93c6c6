"""What a turn used of time, tokens and money, by a clock that the test sets."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.steps.turn_events import TurnUsage
from codex_multi_role.steps.work_clock import WorkClock
from tests.support.prices import write_prices


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_work_clock_resumes_and_pauses_while_awaiting_person() -> None:
    """It continues from the time of earlier sessions and pauses while the run waits only for a person."""
    time = Time()
    clock = WorkClock(5.0, time)
    time.now += 1
    with clock.person():
        time.now += 10
        assert clock.seconds == 6
        with clock.person():
            time.now += 10
        time.now += 10
    time.now += 2
    assert clock.seconds == 8


def test_turn_beside_the_question_counts() -> None:
    time = Time()
    clock = WorkClock(0, time)
    with clock.person():
        time.now += 10
        with clock.turn():
            time.now += 3
        time.now += 10
    assert clock.seconds == 3


def test_turn_that_asks_itself_counts_only_where_another_does() -> None:
    time = Time()
    clock = WorkClock(0, time)
    with clock.turn():
        time.now += 1
        with clock.person(within_turn=True):
            time.now += 10
            with clock.turn():
                time.now += 3
        time.now += 1
    assert clock.seconds == 5


def usage_of(folder: Path, model: str) -> TurnUsage:
    """A tenth of a dollar per token of ``cheap``, a dollar for ``dear``; ``local`` has no price."""
    own = write_prices(folder / "own.yaml", cheap=(1e5, 1e5, 1e5), dear=(1e6, 1e6, 1e6))
    return TurnUsage(PriceList.load(own, folder), model)


def test_rerouted_turn_costs_what_each_model_charges(tmp_path: Path) -> None:
    used = usage_of(tmp_path, "cheap")
    used.add(TokenUsage(1, 0, 1))
    used.model = "dear"
    used.add(TokenUsage(2))
    assert (used.tokens, used.cost) == (TokenUsage(3, 0, 1), Decimal("2.2"))


def test_turn_has_no_cost_if_a_model_has_no_price(tmp_path: Path) -> None:
    used = usage_of(tmp_path, "cheap")
    assert used.cost == 0
    used.model = "local"
    assert used.cost is None
    used.add(TokenUsage(1))
    used.model = "cheap"
    assert used.cost is None


def test_rerouted_model_needs_no_price_before_it_is_used(tmp_path: Path) -> None:
    used = usage_of(tmp_path, "local")
    used.model = "cheap"
    used.add(TokenUsage(1))
    assert used.cost == Decimal("0.1")
