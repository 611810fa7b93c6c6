"""The worst case of a flow in money, as far as limits and prices tell."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.catalog.prices import MILLION, PriceList
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder.cost import dollars

IN_FLIGHT = "and the model calls in progress then"
UNBOUNDED = "no bound in money: set --max-tokens or --max-cost"
CHOSEN = "the model that Codex chooses"
Asked = Sequence[tuple[RoleSpec, str | None]]
"""Roles, each with its model; None if Codex chooses it."""


def worst_cost_words(asked: Asked, prices: PriceList, max_tokens: int | None, max_cost: float | None) -> str:
    """Say what a run that asks these roles costs at most.

    A limit of tokens is a bound in money only if the most expensive kind of token of each model is known.
    """
    if not asked:
        return "no model is asked"
    needed = [each for each in asked if max_cost is not None or each[0].limits.max_cost is not None]
    if unpriced := _unpriced(needed, prices):
        limit = "max_cost" if max_cost is None else "--max-cost"
        return f"unpriced: {prices.file} has no price for {unpriced}; {limit} would be refused"
    limited = all(role.limits.max_tokens or role.limits.max_cost for role, _ in asked)
    if max_tokens is None and max_cost is None and not limited:
        return UNBOUNDED
    if unpriced := _unpriced(asked, prices):
        return f"unpriced: {prices.file} has no price for {unpriced}"
    highest = [prices.models[model].highest for _, model in asked if model]
    bounds = [] if max_cost is None else [(_exact(max_cost), "")]
    if max_tokens is not None:
        dearest = f" if all of {plural(max_tokens, 'token')} are of the most expensive kind"
        bounds.append((max(highest) * max_tokens / MILLION, dearest))
    if limited:
        own = (_own_bound(role, price) for (role, _), price in zip(asked, highest, strict=True))
        bounds.append((sum(own, Decimal()), " by the roles' own limits"))
    amount, condition = min(bounds)
    return f"at most {dollars(amount)}{condition}, {IN_FLIGHT} (prices of {prices.date})"


def _own_bound(role: RoleSpec, price: Decimal) -> Decimal:
    """By the limits of a role of which it has at least one."""
    tokens, cost = role.limits.max_tokens, role.limits.max_cost
    bounds = [*([price * tokens / MILLION] if tokens else []), *([_exact(cost)] if cost else [])]
    return min(bounds)


def _exact(amount: float) -> Decimal:
    return Decimal(str(amount))


def _unpriced(asked: Asked, prices: PriceList) -> str:
    """``gpt-x (planner, solver) and the model that Codex chooses (verifier)``; empty if all have a price."""
    names: dict[str | None, list[str]] = {}
    for role, model in asked:
        if model not in prices.models:
            names.setdefault(model, []).append(role.name)
    return " and ".join(
        f"{model or 'the model that Codex chooses'} ({', '.join(each)})" for model, each in names.items()
    )
