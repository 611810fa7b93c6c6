"""The worst case of a flow in money, as far as limits and prices tell."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from codex_multi_role.catalog.prices import MILLION, PriceList
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder.cost import dollars

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
    if unpriced := _unpriced(models, prices):
        refused = "; --max-cost would be refused" if max_cost is not None else ""
        return f"unpriced: {prices.file} has no price for {unpriced}{refused}"
    bounds = [] if max_cost is None else [(Decimal(str(max_cost)), "")]
    if max_tokens is not None:
        highest = max(prices.models[model].highest for model in models.values() if model)
        condition = f" if all of {plural(max_tokens, 'token')} are of the most expensive kind"
        bounds.append((highest * max_tokens / MILLION, condition))
    amount, condition = min(bounds)
    return f"at most {dollars(amount)}{condition}, {IN_FLIGHT} (prices of {prices.date})"


def _unpriced(models: Mapping[str, str | None], prices: PriceList) -> str:
    """``gpt-x (planner, solver) and the model that Codex chooses (verifier)``; empty if all have a price."""
    roles: dict[str | None, list[str]] = {}
    for role, model in models.items():
        if model not in prices.models:
            roles.setdefault(model, []).append(role)
    return " and ".join(
        f"{model or 'the model that Codex chooses'} ({', '.join(names)})" for model, names in roles.items()
    )
