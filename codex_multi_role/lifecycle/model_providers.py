"""What answers the roles of a run: their model providers, a playbook, or what an extension puts in their place.

An extension registers a `ModelSource` in the group ``codex_multi_role.providers``, under the option that chooses it. It
is looked up only for a run with that option. Also: which model a role asks and what it costs, as far as that is known
before a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from codex_multi_role.catalog import RoleSpec
from codex_multi_role.catalog.prices import PriceList
from codex_multi_role.codex.codex_settings import as_settings, known_settings, needed_user_home
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import AskPerson, EventLog, RunFolder
from codex_multi_role.run_options import RunOptions, RunReport

if TYPE_CHECKING:
    from codex_multi_role.lifecycle.definitions import Definitions

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


Settings = tuple[str, ...]


@dataclass(frozen=True)
class ModelProviders:
    """``provider``: by role, the settings that override all others. ``model``: by role, the model if decided here.

    ``proxy_settings``: those that lead to the recorder, from all settings of a role and the user's home they depend on.
    """

    provider: Callable[[str], Settings] = lambda _: ()
    proxy_settings: Callable[[Settings, Path | None], Settings] = lambda _, __: ()
    model: Callable[[str], str | None] = lambda _: None


class StandIn(Protocol):
    """What answers in place of the models. The run keeps a copy of the file ``path``."""

    @property
    def path(self) -> Path: ...

    @property
    def name(self) -> str: ...

    def model(self, role: str) -> str:
        """The model that is shown for a role."""


@dataclass(frozen=True)
class ModelSource:
    """What an option that an extension adds does to the answers of a run, as an entry point of the option's name.

    ``require_new``: raises `UsageError` if a new run cannot have it. ``load`` reads what stands in for the models
    before anything starts. ``start`` returns what replaces the given providers, or is in front of them, until the
    stack exits. ``close`` is called once the run has ended, and yields messages for the user; an error that it
    raises is then how the run ended. ``suggest``: from the option's value and the workspace, the options that are
    not given. ``person`` returns who answers questions, from the one given. ``writes``: a file outside of the run
    folder that it writes. ``is_inherited``: forks have the option as well.
    """

    require_new: Callable[[RunOptions], None] = lambda _: None
    load: Callable[[RunOptions], StandIn] | None = None
    start: Callable[[Definitions, RunFolder, EventLog, ExitStack, ModelProviders], ModelProviders] = lambda *given: (
        given[-1]
    )
    close: Callable[[Definitions, RunFolder, RunReport], Iterable[str]] = lambda _, __, ___: ()
    suggest: Callable[[Any, Path], dict[str, Any]] = lambda _, __: {}
    person: Callable[[Definitions, RunFolder, AskPerson | None], AskPerson | None] = lambda _, __, person: person
    writes: Callable[[RunOptions], Path | None] = lambda _: None
    is_inherited: bool = True


SOURCES: Registry[ModelSource] = Registry("model source", "codex_multi_role.providers", {})


def sources_of(added: Mapping[str, object]) -> dict[str, ModelSource]:
    """What the options ``added`` by extensions do, by their names. Raises `UsageError` for one that does not load."""
    return {name: SOURCES.find(name) for name in (SOURCES.names() if added else ()) if name in added}


def start_providers(definitions: Definitions, folder: RunFolder, events: EventLog, stack: ExitStack) -> ModelProviders:
    """Start what the run requests, until ``stack`` exits. Raises `UsageError`, `CodexUnavailable`, `StorageError`."""
    models = ModelProviders()
    if definitions.playbook is not None:
        from codex_multi_role.playbook import PlaybookServer  # lazy: most runs have none

        server = stack.enter_context(PlaybookServer(definitions.playbook))
        settings = provider_settings("playbook", "playbook", server.base_url, PLAYBOOK_MODEL)
        models = ModelProviders(lambda _: settings, model=lambda _: PLAYBOOK_MODEL)
    for source in sources_of(definitions.options.added).values():
        models = source.start(definitions, folder, events, stack, models)
    return models


def provider_settings(key: str, name: str, base_url: str, model: str) -> Settings:
    """The settings of a provider on the loopback interface, without its own retries."""
    retries = {"request_max_retries": 0, "stream_max_retries": 0}
    table = {"name": name, "base_url": base_url, "wire_api": "responses", **retries}
    return as_settings({"model_provider": key, "model": model, f"model_providers.{key}": table})
