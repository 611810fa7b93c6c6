"""The time that a run is worked on, which its limit in seconds counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkClock:
    """Counts seconds, starting from those of the sessions ``before``.

    It stands still while the run waits for a person and no turn is running: the time of a person is not the run's, and
    nothing is spent meanwhile. A turn that itself waits for the answer does not count as running, and neither does a
    check that runs beside a question.
    """

    def __init__(self, before: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()  # waits: for memory only
        self._counted = before
        self._since = now()
        self._turns = 0
        self._waits = 0

    @property
    def seconds(self) -> float:
        with self._lock:
            self._count()
            return self._counted

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Around a running turn."""
        self._change(turns=1)
        try:
            yield
        finally:
            self._change(turns=-1)

    @contextmanager
    def person(self, *, within_turn: bool = False) -> Iterator[None]:
        """Around the wait for a person's answer."""
        turns = -1 if within_turn else 0
        self._change(turns=turns, waits=1)
        try:
            yield
        finally:
            self._change(turns=-turns, waits=-1)

    def _change(self, turns: int = 0, waits: int = 0) -> None:
        with self._lock:
            self._count()
            self._turns += turns
            self._waits += waits

    def _count(self) -> None:
        """Add the time since the last change, if the clock was running."""
        now = self._now()
        if self._turns or not self._waits:
            self._counted += now - self._since
        self._since = now
