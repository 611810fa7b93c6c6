from __future__ import annotations

from threading import Event

import pytest

from codex_multi_role.errors import RunInterrupted
from codex_multi_role.steps.recovery import pause


class Watch(Event):
    """Notes how long the wait was to be."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return self.is_set()


def test_provider_is_given_the_pause_it_asks_for_within_bounds() -> None:
    watch = Watch()
    for wanted in (11.5, 3600.0):
        pause(watch, 1, wanted)
    assert watch.seconds == [11.5, 60.0]


def test_pauses_grow_and_differ() -> None:
    watch = Watch()
    for tries in (1, 2) * 20:
        pause(watch, tries)
    first, second = watch.seconds[::2], watch.seconds[1::2]
    assert all(0.5 <= each <= 1 for each in first)
    assert all(1 <= each <= 2 for each in second)
    assert len(set(watch.seconds)) > 20


def test_run_that_stops_does_not_wait_on() -> None:
    watch = Watch()
    watch.set()
    with pytest.raises(RunInterrupted):
        pause(watch, 1)
