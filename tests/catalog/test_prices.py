"""Price lists: read, refused and applied."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.catalog.prices import ModelPrice, PriceList
from codex_multi_role.codex.usage import TokenUsage
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.prices import write_prices

TOKENS = st.integers(0, 10**7)


def test_cached_input_has_its_own_price(tmp_path: Path) -> None:
    prices = PriceList.load(write_prices(tmp_path / "own.yaml", m=(2.0, 0.1, 10.0)), tmp_path)
    assert prices.cost("m", TokenUsage(1_000_000, 400_000, 100_000)) == Decimal("1.2") + Decimal("0.04") + 1
    assert prices.cost("m", TokenUsage()) == 0


@pytest.mark.parametrize(("cache_write", "cost"), [(None, "2.0"), (2.5, "2.15"), (0, "1.4")])
def test_what_is_written_to_the_cache_may_have_its_own_price(cache_write: float | None, cost: str) -> None:
    price = ModelPrice.model_validate({"input": 2, "cached_input": 0.5, "output": 10, "cache_write": cache_write})
    assert price.cost(TokenUsage(1_000_000, 0, 0, 300_000)) == Decimal(cost)
    assert price.cost(TokenUsage(1_000_000, 1_000_000, 0, 300_000)) == Decimal("0.5")


@pytest.mark.parametrize("model", ["m-2026-01-31", "M", "m ", "", "openai/m"])
def test_only_exact_names_have_a_price(tmp_path: Path, model: str) -> None:
    prices = PriceList.load(write_prices(tmp_path / "own.yaml", m=(2.0, 0.1, 10.0)), tmp_path)
    assert prices.cost(model, TokenUsage(1, 0, 1)) is None


@given(TOKENS, TOKENS, TOKENS)
def test_cost_adds_up_without_rounding(tokens: int, cached: int, output: int) -> None:
    """Prices of whole cents give exact amounts, so that turns cost together what their tokens cost together."""
    prices = PriceList.load(None, packaged_roles())
    one, other = TokenUsage(tokens + cached, cached, output), TokenUsage(output, 0, tokens)
    for model in prices.models:
        apart = [prices.cost(model, each) for each in (one, other)]
        assert sum(each for each in apart if each is not None) == prices.cost(model, one + other)


def test_mistakes_are_named_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "date: 2026-02-30\ncurrency: EUR\nmodels:\n"
        "  a: {input: -1, cached_input: true, output: 1000001}\n  b: {input: 1, ouput: 2, cached_input: x}\n"
        '  c: {input: 1,5, cached_input: "1_0", output: 2}\n'
    )
    with pytest.raises(DefinitionError) as caught:
        PriceList.load(file, tmp_path)
    assert [str(each).removeprefix(str(file)) for each in caught.value.problems] == [
        ':1:1: date: must be a date such as 2026-01-31, not "2026-02-30"',
        ':1:1: missing key "source"',
        ':2:1: currency: must be "USD", not "EUR"',
        ":4:7: models.a.input: must be at least 0, not -1",
        ":4:18: models.a.cached_input: must be a number, not true",
        ":4:38: models.a.output: must be at most 1000000, not 1000001",
        ':5:17: models.b: unknown key "ouput"; did you mean "output"?',
        ':5:27: models.b.cached_input: must be a number, not "x"',
        ':6:16: models.c: unknown key "5"',
        ':6:19: models.c.cached_input: must be a number, not "1_0"',
    ]


def test_highest_price_of_many_tokens_is_computed() -> None:
    most = ModelPrice.model_validate(dict.fromkeys(("input", "cached_input", "output"), 1_000_000))
    assert most.cost(TokenUsage(10**15)) == 10**15


def test_list_beside_the_catalog_replaces_the_shipped_one(tmp_path: Path) -> None:
    shipped = PriceList.load(None, tmp_path)
    assert shipped.file == packaged_roles() / "prices.yaml"
    beside = write_prices(tmp_path / "prices.yaml", m=(1.0, 1.0, 1.0))
    assert PriceList.load(None, tmp_path).models.keys() == {"m"}
    given_list = write_prices(tmp_path / "given.yaml", n=(1.0, 1.0, 1.0))
    assert PriceList.load(given_list, tmp_path).file == given_list != beside


def test_shipped_prices_are_plausible() -> None:
    """Output costs most, what is cached least."""
    prices = PriceList.load(None, packaged_roles())
    assert datetime.date.fromisoformat(prices.date) > datetime.date(2026, 1, 1)
    assert all(0 < each.cached_input < each.input < each.output for each in prices.models.values())
