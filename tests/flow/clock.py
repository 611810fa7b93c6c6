"""Work side by side in a time of its own: nothing waits, the clock jumps to whatever is next."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pause:
    """Go on after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Turn:
    """The same in one of the clock's places; they are given away in order."""

    seconds: float


@dataclass(frozen=True)
class Side:
    """Go on when all of ``works`` are done, ``at_once`` at a time, in order."""

    works: Sequence[Work]
    at_once: int


Work = Generator[Pause | Turn | Side, None, Any]


class Clock:
    """``places``: how many turns are taken at once; None for any number."""

    def __init__(self, places: int | None = None) -> None:
        self.now = 0.0
        self._free = float("inf") if places is None else places
        self._waiting: deque[tuple[Work, float]] = deque()
        self._due: list[tuple[float, int, Work, bool]] = []
        self._order = itertools.count()

    def run(self, work: Work) -> None:
        self._after(0, work)
        while self._due:
            self.now, _, each, gives_back = heapq.heappop(self._due)
            if gives_back:
                self._free += 1
                self._give_places()
            self._go_on(each)

    def _after(self, seconds: float, work: Work, *, gives_back: bool = False) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._order), work, gives_back))

    def _give_places(self) -> None:
        while self._waiting and self._free:
            work, seconds = self._waiting.popleft()
            self._free -= 1
            self._after(seconds, work, gives_back=True)

    def _go_on(self, work: Work) -> None:
        wanted = next(work, None)
        match wanted:
            case Pause(seconds):
                self._after(seconds, work)
            case Turn(seconds):
                self._waiting.append((work, seconds))
                self._give_places()
            case Side(works, at_once):
                waiting = deque(works)
                left = [len(waiting)]
                for _ in range(min(at_once, len(waiting)) or 1):
                    self._after(0, self._worker(waiting, left, work))

    def _worker(self, waiting: deque[Work], left: list[int], parent: Work) -> Work:
        """One after another of what waits; whoever does the last of it lets ``parent`` go on."""
        while waiting:
            yield from waiting.popleft()
            left[0] -= 1
        if left[0] == 0:
            left[0] = -1
            self._after(0, parent)
