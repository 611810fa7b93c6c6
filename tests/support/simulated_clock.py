"""Work side by side in a time of its own: nothing waits, the clock jumps to whatever is next."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pause:
    """Continue after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Turn:
    """The same in one of the clock's places; they are given away in order."""

    seconds: float


@dataclass(frozen=True)
class Side:
    """Continue when all of ``works`` are done, ``at_once`` at a time, in order, each after those it ``needs``.

    Asked after each, ``is_last`` may say that no other begins, and that each under way ends after what it does now.
    """

    works: Sequence[Work]
    at_once: int
    needs: Sequence[Sequence[int]] = ()
    is_last: Callable[[], bool] = lambda: False


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
        """Do ``work`` and all that it starts, to the end."""
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
            case Side():
                group = _Group(wanted, work)
                if not wanted.works:
                    self._after(0, work)
                self._begin_more(group)

    def _begin_more(self, group: _Group) -> None:
        for index in group.ready():
            self._after(0, self._item(group, index))

    def _item(self, group: _Group, index: int) -> Work:
        """One of what waits; the last one lets the parent continue."""
        with closing(group.side.works[index]) as work:
            for wanted in work:
                yield wanted
                if group.is_closed:
                    break
        group.done.add(index)
        group.is_closed |= group.side.is_last()
        if group.is_over:
            self._after(0, group.parent)
        self._begin_more(group)


class _Group:
    """Works side by side, and whose they are."""

    def __init__(self, side: Side, parent: Work) -> None:
        self.side = side
        self.parent = parent
        self.done: set[int] = set()
        self.is_closed = False
        self._begun: set[int] = set()

    @property
    def is_over(self) -> bool:
        return self.done == self._begun if self.is_closed else len(self.done) == len(self.side.works)

    def ready(self) -> Iterator[int]:
        """Those that begin now."""
        for index in range(len(self.side.works)):
            needed = {*self.side.needs[index]} if self.side.needs else set()
            has_room = len(self._begun) - len(self.done) < self.side.at_once
            if has_room and not self.is_closed and index not in self._begun and needed <= self.done:
                self._begun.add(index)
                yield index
