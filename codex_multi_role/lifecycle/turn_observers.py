"""The observers of turns that extensions install.

An entry point in the group ``codex_multi_role.turn_observers`` is a function that makes a `TurnObserver` from the
definitions and the live parts of a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.steps import RunResources
from codex_multi_role.steps.observers import TurnObserver

MakeObserver = Callable[[Definitions, RunResources], TurnObserver]
REGISTRY: Registry[MakeObserver] = Registry("observer of turns", "codex_multi_role.turn_observers", {})


class InstalledObservers:
    """Makes them for the first turn or check: the Codex processes are starting then, which a search would delay."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._lock = threading.Lock()
        self._made: Sequence[TurnObserver] | None = None

    def __call__(self, run: RunResources) -> Sequence[TurnObserver]:
        with self._lock:
            if self._made is None:
                self._made = [make(self._definitions, run) for make in _that_load(run)]
            return self._made


def _that_load(run: RunResources) -> Iterator[MakeObserver]:
    """Those that load; the others are warnings, because most runs can do without."""
    names: list[str] = []
    try:
        names = REGISTRY.names()
    except Exception as error:  # whatever the metadata of some package leads to
        run.services.events.publish(Warning(f"no observer of turns was found: {type(error).__name__}: {error}"))
    for name in names:
        try:
            yield REGISTRY.find(name)
        except UsageError as error:
            run.services.events.publish(Warning(f"{error}; {error.hint}"))
