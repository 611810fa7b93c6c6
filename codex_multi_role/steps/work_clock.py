"""How long a run is worked on, which is not how long it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class WorkClock:
    """Counts seconds; begins with those of the sessions ``before``.

    It stands still while a person is waited for and no turn is under way: what a person takes to answer is not the
    run's time, and nothing is spent meanwhile. A turn that waits for the answer itself does not count as one, and
    neither does a check that runs beside a question.
    """

    def __init__(self, before: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
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
        """Around a turn that is under way."""
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
        """Take in the time since the last change, if the clock was running."""
        now = self._now()
        if self._turns or not self._waits:
            self._counted += now - self._since
        self._since = now
