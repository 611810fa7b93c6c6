"""The worst case of a flow in money, as far as limits and prices tell."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from codex_multi_role.catalog.prices import MILLION, PriceList
from codex_multi_role.presentation.wording import dollars, plural

IN_FLIGHT = "plus the model requests that are running then"
UNBOUNDED = "no bound in money: set --max-tokens or --max-cost"


def worst_cost_words(
    models: Mapping[str, str | None], prices: PriceList, max_tokens: int | None, max_cost: float | None
) -> str:
    """Say what a run costs at most. ``models``: by role, its model; None if Codex chooses it.

    A limit of tokens is a bound in money only if the most expensive kind of token of each model is known.
    """
    if not models:
        return "no model is asked"
    if max_tokens is None and max_cost is None:
        return UNBOUNDED
    if unpriced := [_unpriced(role, model) for role, model in models.items() if model not in prices.models]:
        refused = ", which --max-cost requires" if max_cost is not None else ""
        return f"unpriced: {prices.file} has no price for {'; '.join(unpriced)}{refused}"
    bounds = [] if max_cost is None else [(Decimal(str(max_cost)), "")]
    if max_tokens is not None:
        highest = max(prices.models[model].highest for model in models.values() if model)
        bounds.append(
            (highest * max_tokens / MILLION, f" if all of {plural(max_tokens, 'token')} are of the most expensive kind")
        )
    amount, condition = min(bounds)
    return f"at most {dollars(amount)}{condition}, {IN_FLIGHT} (prices of {prices.date})"


def _unpriced(role: str, model: str | None) -> str:
    return f"{model} ({role})" if model else f"the model of {role}, which Codex chooses"
