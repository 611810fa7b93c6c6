"""Which goal starts next. Pure: no clock, no process, no file."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codex_multi_role.presentation.wording import figure, part_of_total
from codex_multi_role.run_folder.cost import exceeds
from codex_multi_role.run_options import LIMITS

AMOUNTS = tuple(LIMITS)
"""What a total may limit."""
TOTAL_BUDGET, FAILURES, NO_QUOTA = "total_budget", "too_many_failures", "quota"
"""The outcomes of a goal that is not started."""


@dataclass(frozen=True)
class Entry:
    """A goal that waits. ``limits``: the most its run may use, by `AMOUNTS`; ``used``: what it has used before.

    Goals that ``share`` the same place run one after another.
    """

    goal_id: str
    priority: int = 0
    share: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)

    def more(self, name: str) -> float:
        """How much more its run may use."""
        return max(0.0, self.limits[name] - self.used.get(name, 0.0))


@dataclass(frozen=True)
class Refusal:
    """Why a goal is not started: ``outcome`` in one word, ``reason`` in a sentence."""

    outcome: str
    reason: str


@dataclass(frozen=True)
class Bounds:
    """Of a whole batch. ``totals``: the most that all goals together may use, by `AMOUNTS`."""

    concurrency: int
    totals: Mapping[str, float] = field(default_factory=dict)
    max_failures: int | None = None


class Schedule:
    """Starts goals by priority, then in their order. ``used``: what all goals of the batch have used before.

    With totals, a goal reserves its own limits before it starts. One that does not fit waits until those that run have
    ended, because they may leave more than they reserved; then it is dropped, and smaller ones after it may start.
    """

    def __init__(self, entries: Iterable[Entry], bounds: Bounds, used: Mapping[str, float]) -> None:
        self._bounds = bounds
        self._used = {name: used.get(name, 0.0) for name in bounds.totals}
        self._ready = [(-entry.priority, number, entry) for number, entry in enumerate(entries)]
        heapq.heapify(self._ready)
        self._held: dict[str, list[tuple[int, int, Entry]]] = {}
        self._running: dict[str, Entry] = {}
        self._shared: set[str] = set()
        self._failures = 0
        self._dropped: dict[str, Refusal] = {}

    @property
    def waiting(self) -> int:
        return len(self._ready) + sum(map(len, self._held.values()))

    @property
    def running(self) -> int:
        return len(self._running)

    def start_next(self) -> str | None:
        """The ID of the goal to start now, which counts as running from here on; None if none may start."""
        if self._bounds.max_failures is not None and self._failures >= self._bounds.max_failures:
            self.refuse_rest(Refusal(FAILURES, f"not started, because {self._failures} goals have failed"))
        while self._ready and len(self._running) < self._bounds.concurrency:
            place = self._ready[0]
            entry = place[-1]
            if entry.share in self._shared:
                heapq.heappush(self._held.setdefault(entry.share, []), heapq.heappop(self._ready))
                continue
            lack = self._lack(entry)
            if lack and self._running:
                return None
            heapq.heappop(self._ready)
            if not lack:
                return self._start(entry)
            self._dropped[entry.goal_id] = Refusal(TOTAL_BUDGET, lack)
            self._release(entry.share)
        return None

    def refuse_rest(self, why: Refusal) -> None:
        """Start no more goals."""
        places = [*self._ready, *(place for held in self._held.values() for place in held)]
        self._dropped |= {place[-1].goal_id: why for place in places}
        self._ready, self._held = [], {}

    def take_dropped(self) -> dict[str, Refusal]:
        """The goals that will not start, by ID, each once."""
        dropped, self._dropped = self._dropped, {}
        return dropped

    def end(self, goal_id: str, used: Mapping[str, float], *, failed: bool) -> None:
        """Note that a goal is no longer running, and what its run has used."""
        entry = self._running.pop(goal_id)
        self._shared.discard(entry.share)
        self._release(entry.share)
        for name in self._used:
            self._used[name] += used.get(name, 0.0) - entry.used.get(name, 0.0)
        self._failures += failed

    def _start(self, entry: Entry) -> str:
        self._running[entry.goal_id] = entry
        if entry.share:
            self._shared.add(entry.share)
        return entry.goal_id

    def _release(self, share: str) -> None:
        """Let the next goal have the place."""
        if held := self._held.get(share):
            heapq.heappush(self._ready, heapq.heappop(held))

    def _lack(self, entry: Entry) -> str:
        """Why what the goal may use does not fit into what is left of a total; empty if it does."""
        for name, total in self._bounds.totals.items():
            left = total - self._used[name] - sum(each.more(name) for each in self._running.values())
            if exceeds(entry.more(name), left):
                more = " more" if entry.used.get(name) else ""
                rest = part_of_total(name, max(0.0, left), total)
                return f"{rest} are left for the batch; the goal may use {figure(name, entry.more(name))}{more}"
        return ""
