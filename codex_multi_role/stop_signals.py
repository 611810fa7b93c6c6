"""How a run is stopped from outside: Ctrl-C, SIGTERM, SIGQUIT, and the end of its terminal (SIGHUP)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop this process in order. Under ``nohup``, or for a shell's ``&``, the last two may not."""
    optional = (signal.SIGHUP, signal.SIGQUIT)
    return [signal.SIGINT, signal.SIGTERM, *(each for each in optional if signal.getsignal(each) != signal.SIG_IGN)]


class Stop:
    """What a signal to stop does: the first one stops the run, each further one calls ``hurry``.

    Except SIGHUP, which the system and the shell both send when a terminal closes.

    While the run ``interrupts``, the first raises KeyboardInterrupt; later it is only noted. Raised wherever the main
    thread happens to be, it could leave the workflow running, and its end would be waited for; a second one could cut
    the writing of the state short.
    """

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self.asked = False
        self.interrupts = True
        self.in_a_hurry = False
        self._told = False

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            if number == signal.SIGHUP:
                return
            self.in_a_hurry = True
            if self._told:
                self._hurry()
            return
        self.asked = True
        if self.interrupts:
            self._told = True  # nothing is under way that could mistake its end for a failure
            raise KeyboardInterrupt

    def told(self) -> None:
        """Everybody knows that the run stops: what ends now was meant to, and who is in a hurry need not wait."""
        self._told = True
        if self.in_a_hurry:
            self._hurry()


@contextmanager
def stop_signals(hurry: Callable[[], None]) -> Iterator[Stop]:
    """Let all `stopping_signals` stop a run as Ctrl-C does. Only the main thread may set handlers."""
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
