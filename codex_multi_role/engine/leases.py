"""Which process of a role works for which walk, if several ask it at the same time."""

from __future__ import annotations

import threading
from collections import defaultdict

from codex_multi_role.codex.fleet import instance_name


class Instances:
    """All processes of a run: ``role``, then ``role.2``, ``role.3`` … as more are needed at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: dict[str, set[int]] = defaultdict(set)

    def take(self, role: str, preferred: str = "") -> str:
        """Take the ``preferred`` process of the role if it is free, otherwise the lowest free one."""
        with self._lock:
            taken = self._taken[role]
            number = _number(preferred) if preferred else 1
            if number in taken:
                number = next(each for each in range(1, len(taken) + 2) if each not in taken)
            taken.add(number)
        return instance_name(role, number)

    def give_back(self, role: str, instance: str) -> None:
        with self._lock:
            self._taken[role].discard(_number(instance))


def _number(instance: str) -> int:
    _, _, last = instance.rpartition(".")
    return int(last) if last.isdigit() and "." in instance else 1


class Leases:
    """The processes that one walk has leased; a role keeps its process, and so its thread, until the walk ends."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances
        self._held: dict[str, str] = {}

    def instance(self, role: str) -> str:
        if role not in self._held:
            self._held[role] = self._instances.take(role)
        return self._held[role]

    def move(self, role: str, instance: str) -> None:
        """Hold ``instance`` from now on if it is free, because the thread of recorded work belongs to that process."""
        held = self._held.get(role)
        if held is not None and held != instance:
            self._instances.give_back(role, held)
            self._held[role] = self._instances.take(role, instance)

    def release(self) -> None:
        for role, instance in self._held.items():
            self._instances.give_back(role, instance)
        self._held.clear()
