"""A limit on the number of processes that a run has at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from codex_multi_role.errors import RunInterrupted


class Slots:
    """Room for ``most`` processes, None for any number. A process is in use during a turn, otherwise idle.

    If there is no room, ``leave(role)`` is called for the process that was idle longest, and its room is free once it
    has ended. If none is idle, turns wait in order until one is. Nobody waits while holding room, so nested work cannot
    deadlock, and a wait is as long as the turns before it, each of which has its deadline.
    """

    def __init__(self, most: int | None, leave: Callable[[str], None]) -> None:
        self._most = most
        self._leave = leave
        self._lock = threading.Lock()  # waits: for memory only
        self._in_use: set[str] = set()
        self._idle: dict[str, None] = {}  # longest idle first
        self._waiting: deque[tuple[str, Future[str]]] = deque()
        self._closed = False

    def fill(self, roles: Iterable[str]) -> list[str]:
        """As many of ``roles`` as there is room for; their processes count as idle from now on."""
        with self._lock:
            self._idle |= dict.fromkeys(list(roles)[: self._most])
            return list(self._idle)

    def take(self, role: str) -> str:
        """Wait for room for a turn of ``role``; returns the role whose process must be ended first, or an empty string.

        Raises `RunInterrupted` once `close` was called.
        """
        with self._lock:
            if self._closed:
                raise RunInterrupted
            if role in self._idle or self._has_room():
                self._idle.pop(role, None)
                self._in_use.add(role)
                return ""
            if self._idle:
                return self._reassign_idle(role)
            place: Future[str] = Future()
            self._waiting.append((role, place))
        return place.result()  # waits: for the turns before, ended by their deadlines or by `close`

    def give_back(self, role: str) -> None:
        """End the turn of ``role``: its process becomes idle, or makes room for the next waiting turn."""
        with self._lock:
            self._in_use.discard(role)
            self._idle[role] = None
            if self._waiting:
                next_role, place = self._waiting.popleft()
                place.set_result(self._reassign_idle(next_role))

    def close(self) -> None:
        """Wake all waiting turns and admit no more."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.popleft()[1].set_exception(RunInterrupted())

    def _has_room(self) -> bool:
        return self._most is None or len(self._in_use) + len(self._idle) < self._most

    def _reassign_idle(self, role: str) -> str:
        longest_idle = next(iter(self._idle))
        del self._idle[longest_idle]
        self._leave(longest_idle)
        self._in_use.add(role)
        return longest_idle
