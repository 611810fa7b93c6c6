"""Stopping a run from outside: Ctrl-C, SIGTERM, SIGQUIT, and the end of its terminal (SIGHUP)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop this process in an orderly way: not those that ``nohup`` or a shell's ``&`` ignores."""
    optional = (signal.SIGHUP, signal.SIGQUIT)
    return [signal.SIGINT, signal.SIGTERM, *(each for each in optional if signal.getsignal(each) != signal.SIG_IGN)]


class Stop:
    """Handles stop signals: the first one stops the run, each further one calls ``hurry``.

    The exception is a further SIGHUP, because the system and the shell both send one when a terminal closes.

    While the run ``interrupts``, the first signal raises KeyboardInterrupt; later it is only noted. Because the
    exception is raised wherever the main thread happens to be, it could leave the workflow running, and the run would
    wait for its end. A second exception could interrupt the writing of the state.
    """

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self.asked = False
        self.interrupts = True
        self.in_a_hurry = False
        self._announced = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            if number == signal.SIGHUP:
                return
            self.in_a_hurry = True
            if self._announced:
                self._hurry()
            return
        self.asked = True
        if self.interrupts:
            self._announced = True  # nothing is running that could mistake its end for a failure
            raise KeyboardInterrupt

    def told(self) -> None:
        """Note that all parts know of the stop: what ends now was meant to end, and a hurried stop need not wait."""
        self._announced = True
        if self.in_a_hurry:
            self._hurry()


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[Stop]:
    """Make all `stopping_signals` stop a run like Ctrl-C. Only the main thread may set handlers."""
    stop = Stop(hurry)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.signal(number, stop) for number in stopping_signals()}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
