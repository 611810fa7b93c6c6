"""Room for processes: never more than said, in order, and nobody left waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from codex_multi_role.codex.slots import Slots
from codex_multi_role.errors import RunInterrupted


class Rooms:
    """Counts the processes there would be; a role that is left is alive until whoever took its room ends it."""

    def __init__(self, most: int | None) -> None:
        self.left: list[str] = []
        self.slots = Slots(most, self.left.append)
        self.alive: set[str] = set()
        self.peak = 0
        self._lock = threading.Lock()

    def turn(self, role: str) -> None:
        longest_idle = self.slots.take(role)
        with self._lock:
            self.alive.discard(longest_idle)
            self.alive.add(role)
            self.peak = max(self.peak, len(self.alive))
        self.slots.give_back(role)


def wait_until_waiting(pool: list[threading.Thread]) -> None:
    """Until each thread waits for its place: nothing else keeps it alive."""
    for thread in pool:
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()


def test_room_of_the_one_idle_longest_is_taken() -> None:
    rooms = Rooms(2)
    for role in ("a", "b", "a", "c", "b"):
        rooms.turn(role)
    assert rooms.left == ["b", "a"]
    assert rooms.alive == {"b", "c"}


def test_without_a_limit_nothing_is_left() -> None:
    rooms = Rooms(None)
    for number in range(100):
        rooms.turn(str(number))
    assert (rooms.left, len(rooms.alive)) == ([], 100)


def test_those_started_ahead_of_time_count() -> None:
    left: list[str] = []
    slots = Slots(2, left.append)
    assert slots.fill(["a", "b", "c"]) == ["a", "b"]
    assert slots.take("c") == "a"
    assert left == ["a"]


def test_who_waits_is_served_in_order() -> None:
    slots = Slots(1, lambda _: None)
    slots.take("first")
    served: list[str] = []

    def turn(role: str) -> None:
        slots.take(role)
        served.append(role)
        slots.give_back(role)

    roles = [f"r{number}" for number in range(5)]
    threads = [threading.Thread(target=turn, args=(role,)) for role in roles]
    wait_until_waiting(threads)
    slots.give_back("first")
    for thread in threads:
        thread.join(10)
    assert served == roles


def test_closing_wakes_all_who_wait_and_lets_nobody_in() -> None:
    slots = Slots(1, lambda _: None)
    slots.take("first")
    woken: list[str] = []

    def turn(role: str) -> None:
        with pytest.raises(RunInterrupted):
            slots.take(role)
        woken.append(role)

    threads = [threading.Thread(target=turn, args=(role,)) for role in ("a", "b")]
    wait_until_waiting(threads)
    slots.close()
    for thread in threads:
        thread.join(10)
    assert sorted(woken) == ["a", "b"]
    with pytest.raises(RunInterrupted):
        slots.take("first")


@pytest.mark.parametrize("most", [1, 2, 5])
def test_there_are_never_more_than_said(most: int) -> None:
    rooms = Rooms(most)

    def work(number: int) -> None:
        chance = Random(number)
        for _ in range(200):
            rooms.turn(f"{number}.{chance.randint(1, 3)}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert rooms.peak == most
