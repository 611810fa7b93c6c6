"""The subscribers of extensions, which get every event of a run as one session of it publishes them.

An entry point in the group ``codex_multi_role.subscribers`` is a `Subscription`: called without arguments once per
session, it returns a context manager, which gives a function for the event records, or None if it wants none. The
records are those of ``events.jsonl``: ``run_started`` has the run's id, ``run_ended`` its folder. The function is
called on the run's threads, one call at a time, and has to return soon. The context is left after the last event.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import Record

LOG = logging.getLogger(__name__)
Subscriber = Callable[[Record], None]
Subscription = Callable[[], AbstractContextManager[Subscriber | None]]
_REGISTRY: Registry[Subscription] = Registry("subscriber", "codex_multi_role.subscribers", {})


class InstalledSubscribers:
    """Passes event records to all of them. One that fails is logged as a warning, gets no more, and changes no run.

    To look for them would delay the first turn, so that they `open` while the Codex processes start. Events that are
    published earlier are kept for them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
        for name in _REGISTRY.names():
            _succeeds(name, partial(self._start, name))

    def _start(self, name: str) -> None:
        context = _REGISTRY.find(name)()
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
