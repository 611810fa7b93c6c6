"""Telling when files change: what somebody saves in an editor is to hold without a restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

SETTLE_SECONDS = 0.1
LONGEST_SETTLING_SECONDS = 2.0
CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})
"""Not that somebody reads: we do."""


class Changes:
    """Whether anything changed in the watched folders. An editor writes a file in several goes: they count as one."""

    def __init__(self) -> None:
        self._changed = threading.Event()
        self._ended = threading.Event()

    def dispatch(self, event: FileSystemEvent) -> None:
        """As watchdog calls a handler, on its own thread."""
        if event.event_type in CHANGES:
            self._changed.set()

    def wait(self, seconds: float) -> bool:
        """Whether something changes within ``seconds``; returns once it has settled, and at once when it is `end`."""
        if not self._changed.wait(seconds) or self._ended.is_set():
            return False
        end = time.monotonic() + LONGEST_SETTLING_SECONDS
        while self._changed.is_set() and time.monotonic() < end and not self._ended.is_set():
            self._changed.clear()
            self._changed.wait(SETTLE_SECONDS)
        self._changed.clear()
        return not self._ended.is_set()

    def ends_within(self, seconds: float) -> bool:
        """Whether nobody wants to know any more, now or within ``seconds``."""
        return self._ended.wait(seconds)

    def end(self) -> None:
        """Whoever waits returns."""
        self._ended.set()
        self._changed.set()


@contextmanager
def watched(folders: Iterable[Path], changes: Changes) -> Iterator[None]:
    """Tell ``changes`` of what changes in ``folders``, not below them.

    Raises `OSError` where the system watches no more of them.
    """
    from watchdog.observers import Observer  # here: only those who watch pay for it

    log = logging.getLogger("watchdog")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # an event at the very end of the watching is no news for a terminal
    observer = Observer()
    try:
        for folder in sorted({folder.resolve() for folder in folders}):
            observer.schedule(changes, str(folder))  # type: ignore[arg-type]  # it asks for no more than `dispatch`
        observer.start()
        yield
    finally:
        observer.stop()
        if observer.is_alive():
            observer.join(LONGEST_SETTLING_SECONDS)
