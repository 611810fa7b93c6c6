"""Limits, and what they interrupt."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleLimits, RoleSpec
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.errors import BudgetUsedUp
from codex_multi_role.steps.budget import Budget, Limits
from codex_multi_role.steps.work_clock import WorkClock

ONE, TWO = (RoleSpec(name=name, prompt_text="Do it.", source=Path(f"{name}.yaml")) for name in ("one", "two"))


def limited(name: str, **own: float) -> RoleSpec:
    limits = RoleLimits.model_validate({"idle_seconds": 1, "turn_seconds": 1, **own})
    return RoleSpec(name=name, prompt_text="Do it.", limits=limits, source=Path(f"runs/r/catalog/{name}.yaml"))


def budget(limits: Limits) -> Budget:
    return Budget(limits, [], WorkClock(0.0))


def test_limit_is_exceeded_beyond_it_and_used_up_at_it() -> None:
    used = budget(Limits(tokens=100))
    used.spend(ONE, "m", TokenUsage(80, 30, 20))
    assert not used.exceeded.is_set()
    with pytest.raises(BudgetUsedUp, match=r"^100 of 100 tokens are used: one 100$"):
        used.reserve_turn(ONE)
    used.spend(TWO, "m", TokenUsage(1))
    assert used.exceeded.is_set()


def test_interruption_shows_what_was_used_in_the_end() -> None:
    """Turns that end later may have used more by then."""
    used = budget(Limits(tokens=100))
    assert used.interruption() is None
    used.spend(ONE, "m", TokenUsage(150))
    used.spend(TWO, "m", TokenUsage(70))
    assert str(used.interruption()) == "220 of 100 tokens are used: one 150, two 70"


def test_limits_of_a_role_concern_that_role() -> None:
    """A resumed run has the role from its own copy, which nobody should edit."""
    one = limited("one", max_tokens=100)
    used = budget(Limits())
    used.spend(TWO, "m", TokenUsage(1_000))
    used.spend(one, "m", TokenUsage(100))
    assert not used.exceeded.is_set()
    used.spend(one, "m", TokenUsage(1))
    error = used.interruption()
    assert str(error) == "101 of 100 tokens are used, the limit of role one"
    assert error is not None
    assert error.hint.startswith("Raise limits.max_tokens of role one in your one.yaml")


def test_cost_is_limited_by_the_price_of_each_model() -> None:
    def price(model: str, usage: TokenUsage) -> Decimal:
        return Decimal("0.01") * usage.output if model == "priced" else Decimal()

    used = Budget(Limits(cost=Decimal(1)), [], WorkClock(0.0), price)
    used.spend(ONE, "free", TokenUsage(output=500))
    used.spend(limited("two", max_cost=0.9), "priced", TokenUsage(output=80))
    assert not used.exceeded.is_set()
    used.spend(limited("two", max_cost=0.9), "priced", TokenUsage(output=15))
    assert str(used.interruption()) == "$0.95 of $0.90 are used, the limit of role two"


def test_cached_input_counts_once_in_the_ledger() -> None:
    turn = {"model": "m", "tokens": {"input": 50, "cached_input": 40, "output": 10}}
    with pytest.raises(BudgetUsedUp, match="60 of 60 tokens are used: one 60"):
        Budget(Limits(tokens=60), [("one", turn)], WorkClock(0.0)).reserve_turn(ONE)


def priced(limits: Limits) -> Budget:
    """Only the model ``m`` has a price: a dollar per token."""
    return Budget(limits, [], WorkClock(0.0), lambda model, usage: Decimal(usage.total) if model == "m" else None)


def test_unpriced_turns_of_other_roles_do_not_limit_a_role() -> None:
    used, two = priced(Limits()), limited("two", max_cost=5)
    used.spend(ONE, "local", TokenUsage(1))
    used.require_prices(two, "m")
    with pytest.raises(BudgetUsedUp, match=r"missing for other$"):
        used.require_prices(two, "other")


def test_unpriced_turn_of_any_role_limits_the_run() -> None:
    used = priced(Limits(cost=Decimal(5)))
    used.spend(ONE, "local", TokenUsage(1))
    with pytest.raises(BudgetUsedUp, match=r"missing for local, other$"):
        used.require_prices(TWO, "other")


def test_model_without_price_ends_turns_under_a_limit() -> None:
    """The provider may answer with another model than the requested one."""
    for role, limits in ((ONE, Limits(cost=Decimal(5))), (limited("one", max_cost=5), Limits())):
        used = priced(limits)
        used.spend(role, "m", TokenUsage(1))
        assert not used.exceeded.is_set()
        used.spend(role, "local", TokenUsage())
        assert used.exceeded.is_set()
        assert str(used.interruption()).endswith("it is missing for local")


def test_model_without_price_ends_no_unlimited_turn() -> None:
    used = priced(Limits(tokens=5))
    used.spend(ONE, "local", TokenUsage(1))
    assert not used.exceeded.is_set()


@pytest.mark.parametrize(
    ("limits", "own", "is_last"),
    [
        (Limits(), {}, False),
        (Limits(turns=9, seconds=9.0), {"max_turns": 9}, False),
        (Limits(tokens=9), {}, True),
        (Limits(cost=Decimal(9)), {}, True),
        (Limits(), {"max_tokens": 9}, True),
    ],
)
def test_turn_of_unknown_usage_is_the_last_under_a_limit_that_needs_it(
    limits: Limits, own: dict[str, float], is_last: bool
) -> None:
    """Turns that are running continue."""
    used, role = budget(limits), limited("one", **own)
    used.note_unknown_usage(role)
    assert not used.exceeded.is_set()
    expected = pytest.raises(BudgetUsedUp, match="the provider of role one") if is_last else nullcontext()
    with expected:
        used.reserve_turn(role)
