"""Cancellation: an event that also wakes a thread that waits for something else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class CancellationToken(threading.Event):
    """Set once and permanently, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Callable[[], None]] = []
        self._calling = threading.Lock()  # waits: for memory only

    def set(self) -> None:
        super().set()
        with self._calling:
            calls = list(self._calls)
        for call in calls:
            call()

    @contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """``call`` is called when the token is set within the block, or at once if it is already set."""
        with self._calling:
            self._calls.append(call)
        if self.is_set():
            call()
        try:
            yield
        finally:
            with self._calling:
                self._calls.remove(call)
