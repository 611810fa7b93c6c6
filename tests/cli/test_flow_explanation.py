"""The worst case in money."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleLimits, RoleSpec
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.cli.flow_explanation import IN_FLIGHT, UNBOUNDED, worst_cost_words
from tests.support.prices import write_prices

TOGETHER = f", {IN_FLIGHT} (prices of 2026-01-31)"


@pytest.fixture
def prices(tmp_path: Path) -> PriceList:
    return PriceList.load(write_prices(tmp_path / "own.yaml", cheap=(1, 0.1, 5), dear=(30, 3, 20)), tmp_path)


def roles(*models: str | None, **limits: float) -> list[tuple[RoleSpec, str | None]]:
    """Roles ``a``, ``b`` … with these models and limits of their own."""
    given = RoleLimits.model_validate({"idle_seconds": 9, "turn_seconds": 9, **limits})
    return [
        (RoleSpec(name=name, prompt_text="Do.", limits=given), model)
        for name, model in zip("abcd", models, strict=False)
    ]


def test_without_a_limit_there_is_no_bound(prices: PriceList) -> None:
    assert worst_cost_words(roles("cheap"), prices, None, None) == UNBOUNDED


def test_tokens_count_as_the_dearest_that_any_role_uses(prices: PriceList) -> None:
    words = "if all of 2,000,000 tokens are of the most expensive kind"
    assert worst_cost_words(roles("cheap"), prices, 2_000_000, None) == f"at most $10.00 {words}{TOGETHER}"
    both = roles("cheap", "dear")
    assert worst_cost_words(both, prices, 2_000_000, None) == f"at most $60.00 {words}{TOGETHER}"
    assert worst_cost_words(both, prices, 2_000_000, 7.5) == f"at most $7.50{TOGETHER}"


def test_limits_of_all_roles_are_a_bound(prices: PriceList) -> None:
    limited = roles("cheap", "dear", max_tokens=100_000, max_cost=2)
    assert worst_cost_words(limited, prices, None, None) == f"at most $2.50 by the roles' own limits{TOGETHER}"
    assert worst_cost_words([*limited, *roles("cheap")], prices, None, None) == UNBOUNDED


def test_cost_limit_of_a_role_needs_its_price(prices: PriceList) -> None:
    words = worst_cost_words([*roles("other", max_cost=2), *roles(None, "cheap")[1:]], prices, None, None)
    assert words == f"unpriced: {prices.file} has no price for other (a); max_cost would be refused"


def test_roles_without_a_price_are_named(prices: PriceList) -> None:
    words = worst_cost_words(roles("cheap", None, "other", None), prices, None, 1.0)
    unpriced = "the model that Codex chooses (b, d) and other (c)"
    assert words == f"unpriced: {prices.file} has no price for {unpriced}; --max-cost would be refused"
