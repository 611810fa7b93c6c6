"""What extensions watch in a run: the events, as one session of it publishes them, and its turns.

An entry point in the group ``codex_multi_role.subscribers`` is a `Subscription`: called without arguments once per
session, it returns a context manager, which gives a function for the event records, or None if it wants none. The
records are those of ``events.jsonl``: ``run_started`` has the run's id, ``run_ended`` its folder. The function is
called on the run's threads, one call at a time, and has to return soon. The context is left after the last event.

An entry point in the group ``codex_multi_role.turn_observers`` is a function that makes a `TurnObserver` from the
definitions and the live parts of a run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from codex_multi_role.errors import UsageError
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import Record
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.steps import RunResources
from codex_multi_role.steps.observers import TurnObserver

LOG = logging.getLogger(__name__)
Subscriber = Callable[[Record], None]
Subscription = Callable[[], AbstractContextManager[Subscriber | None]]
SUBSCRIBERS: Registry[Subscription] = Registry("subscriber", "codex_multi_role.subscribers", {})


class InstalledSubscribers:
    """Passes event records to all of them. One that fails is logged as a warning, gets no more, and changes no run.

    To look for them would delay the first turn, so that they `open` while the Codex processes start. Events that are
    published earlier are kept for them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # waits: for what subscribers do with an event
        self._early: list[Record] | None = []
        self._subscribers: dict[str, Subscriber] = {}
        self._contexts = ExitStack()

    def __call__(self, record: Record) -> None:
        with self._lock:
            if self._early is None:
                self._pass_on(record)
            else:
                self._early.append(record)

    def open(self) -> None:
        """Start those that are installed, and pass on what they missed. Does nothing when called again."""
        if self._early is None:
            return
        _succeeds("of an extension", self._start_all)
        with self._lock:
            early, self._early = self._early, None
            for record in early:
                self._pass_on(record)

    def close(self) -> None:
        """Leave their contexts. A run that ended before they were opened has its events passed on now."""
        if self._early:
            self.open()
        self._contexts.close()

    def _start_all(self) -> None:
        for name in SUBSCRIBERS.names():
            _succeeds(name, partial(self._start, name))

    def _start(self, name: str) -> None:
        context = SUBSCRIBERS.find(name)()
        subscriber = context.__enter__()
        self._contexts.callback(_succeeds, name, partial(context.__exit__, None, None, None))
        if subscriber is not None:
            self._subscribers[name] = subscriber

    def _pass_on(self, record: Record) -> None:
        every = self._subscribers.items()
        self._subscribers = {name: each for name, each in every if _succeeds(name, partial(each, dict(record)))}


def _succeeds(name: str, work: Callable[[], object]) -> bool:
    try:
        work()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # the run has no part in it
        LOG.warning("the subscriber %s failed: %s: %s", name, type(error).__name__, error)
        return False
    return True


MakeObserver = Callable[[Definitions, RunResources], TurnObserver]
OBSERVERS: Registry[MakeObserver] = Registry("observer of turns", "codex_multi_role.turn_observers", {})


class InstalledObservers:
    """Makes them for the first turn or check: the Codex processes are starting then, which a search would delay."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._lock = threading.Lock()  # waits: for one search for entry points, and small files
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
        names = OBSERVERS.names()
    except Exception as error:  # whatever the metadata of some package leads to
        run.services.events.publish(Warning(f"no observer of turns was found: {type(error).__name__}: {error}"))
    for name in names:
        try:
            yield OBSERVERS.find(name)
        except UsageError as error:
            run.services.events.publish(Warning(f"{error}; {error.hint}"))
