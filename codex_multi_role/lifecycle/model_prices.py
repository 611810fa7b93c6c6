"""Which model a role asks and what it costs, as far as that is known before a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.codex_settings import known_settings, needed_user_home
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.places import Place

PLAYBOOK_MODEL = "playbook"
"""The model of every role that a playbook plays."""


def model_of(role: RoleSpec, run_model: str | None, settings: tuple[str, ...]) -> str | None:
    """The model that the role names, the run, or else the ``settings`` of its process; None: Codex chooses it."""
    if named := role.resolved_model(os.environ, run_model):
        return named
    return known_settings(settings, needed_user_home(settings, os.environ)).get("model") or None


def require_prices(prices: PriceList, models: Mapping[str, str | None]) -> None:
    """Raise one `DefinitionError` for all models, given by role, that have no price."""
    roles: dict[str | None, list[str]] = {}
    for role, model in models.items():
        if model is None or model not in prices.models:
            roles.setdefault(model, []).append(role)
    if roles:
        raise DefinitionError.together(_problem(prices, model, names) for model, names in roles.items())


def _problem(prices: PriceList, model: str | None, roles: Sequence[str]) -> DefinitionError:
    place, who = Place(prices.file, ("models",)), f"{'role' if len(roles) == 1 else 'roles'} {', '.join(roles)}"
    if model is None:
        return place.error(
            f"a maximum cost needs the price of each model, but Codex chooses that of the {who}",
            "Name the model: `model:` in the role's file, or --model NAME.",
        )
    return place.error(
        f"a maximum cost needs the price of each model, but {model} has none ({who})",
        "Name a list that has it: --prices FILE, such as a copy of this one with a line for the model.",
    )
