"""Detect changes of files, so that what somebody saves in an editor applies without a restart."""

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
"""Without reading, because we read the files ourselves."""


class Changes:
    """Whether anything changed in the watched folders. An editor's several writes to one file count as one change."""

    def __init__(self) -> None:
        self._changed = threading.Event()
        self._ended = threading.Event()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event; watchdog calls this on its own thread."""
        if event.event_type in CHANGES:
            self._changed.set()

    def wait(self, seconds: float) -> bool:
        """Whether something changes within ``seconds``; returns once changes have settled, or at once after `end`."""
        if not self._changed.wait(seconds) or self._ended.is_set():
            return False
        end = time.monotonic() + LONGEST_SETTLING_SECONDS
        while self._changed.is_set() and time.monotonic() < end and not self._ended.is_set():
            self._changed.clear()
            self._changed.wait(SETTLE_SECONDS)
        self._changed.clear()
        return not self._ended.is_set()

    def ends_within(self, seconds: float) -> bool:
        """Whether `end` has been called, or is called within ``seconds``."""
        return self._ended.wait(seconds)

    def end(self) -> None:
        """Wake all waiting threads."""
        self._ended.set()
        self._changed.set()


@contextmanager
def watched(folders: Iterable[Path], changes: Changes) -> Iterator[None]:
    """Report changes in ``folders``, not below them, to ``changes``.

    Raises `OSError` if the system cannot watch any more folders.
    """
    from watchdog.observers import Observer  # lazy: only watching needs it

    log = logging.getLogger("watchdog")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # keep an event during the shutdown off the terminal
    observer = Observer()
    try:
        for folder in sorted({folder.resolve() for folder in folders}):
            observer.schedule(changes, str(folder))  # type: ignore[arg-type]  # it needs only `dispatch`
        observer.start()
        yield
    finally:
        observer.stop()
        if observer.is_alive():
            observer.join(LONGEST_SETTLING_SECONDS)
