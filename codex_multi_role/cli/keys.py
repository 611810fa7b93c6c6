"""Keys that a person presses while something is drawn on the terminal, and the terminal as it was before.

`click.getchar` and rich have nothing for this: they read in raw mode, block, and know no background.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codex_multi_role.cli.live import Drawing

Key = tuple[str, Callable[[], None]]
"""What it does, in words of which the first one is its name, and that."""
LOOK_SECONDS = 0.1
STOP_SECONDS = 5.0
"""Maximum wait for the main thread, which stops this process."""
LONGEST_CHUNK = 256
HELP = "?"
TERMINAL = threading.Lock()  # waits: for a person at a question or in the pager, ended by the person
"""Whoever reads more than keys from the terminal has it."""


def is_in_foreground(descriptor: int) -> bool:
    """Whether this process may read from the terminal: one in the background is stopped if it reads or sets it up."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # not the controlling terminal of this process: it has no background
        return True


class Keys:
    """Reads keys from the terminal ``descriptor`` while ``drawing`` is on it and this process is in the foreground.

    Only then the terminal passes single keys and does not show them; Ctrl-C and Ctrl-Z stay signals. Made in the main
    thread.
    """

    def __init__(self, drawing: Drawing, keys: Mapping[str, Key], descriptor: int) -> None:
        self._drawing, self._descriptor = drawing, descriptor
        self._keys = {**keys, HELP: ("keys: this list", self._help)} if keys else {}
        self._lock = threading.RLock()  # waits: for one setting of the terminal
        self._before: list[Any] | None = None
        self._is_stopping = False
        self._continued, self.closed = threading.Event(), threading.Event()
        handlers = {signal.SIGTSTP: self._on_stop, signal.SIGTERM: lambda *_: sys.exit(128 + signal.SIGTERM)}
        self._handled = [each for each in handlers if signal.getsignal(each) is signal.SIG_DFL]  # not what is ignored
        for each in self._handled:
            signal.signal(each, handlers[each])
        atexit.register(self.release)
        self._thread = threading.Thread(target=self._read, name="keys", daemon=True)
        self._thread.start()

    @property
    def line(self) -> str:
        """The keys on one line; empty while they are not read."""
        names = (f"{key} {words.split()[0].rstrip(':')}" for key, (words, _) in self._keys.items())
        return "  ".join(names) if self._before else ""

    def release(self) -> None:
        """Leave the terminal as it was before; in the background, it is the shell's."""
        with self._lock, suppress(termios.error):
            before, self._before = self._before, None
            if before is not None and is_in_foreground(self._descriptor):
                termios.tcsetattr(self._descriptor, termios.TCSANOW, before)

    def close(self) -> None:
        self.closed.set()
        self._thread.join()  # waits: for one look, also of the pager
        self.release()
        for each in self._handled:
            signal.signal(each, signal.SIG_DFL)
        atexit.unregister(self.release)

    def _read(self) -> None:
        while not self.closed.is_set():  # waits: for keys, ended by `close`
            if self._is_stopping:
                self._stop()
            typed = self._typed()
            if typed is None:
                self._drawing.start(again=True)  # in the foreground again
                self.closed.wait(LOOK_SECONDS)
            elif typed in self._keys:
                words, press = self._keys[typed]
                self._drawing.tell("")
                try:
                    press()
                except Exception as error:  # a key ends neither the run nor the keys
                    self._drawing.tell(f"{words}: {error}")

    def _typed(self) -> str | None:
        """What was typed within a moment: one key, or what is pasted; None if no keys are read now."""
        if not self._takes_keys():
            return None
        if select.select([self._descriptor], [], [], LOOK_SECONDS)[0]:
            with self._lock, suppress(OSError):
                if self._takes_keys() and select.select([self._descriptor], [], [], 0)[0]:
                    # waits: for nothing: `select` said that there is a key, or that the terminal is gone
                    return os.read(self._descriptor, LONGEST_CHUNK).decode("utf-8", "replace") or None
        return ""

    def _takes_keys(self) -> bool:
        with self._lock, suppress(termios.error):
            if self.closed.is_set() or not self._drawing.is_drawn or not is_in_foreground(self._descriptor):
                return False
            now = termios.tcgetattr(self._descriptor)
            if now[3] & termios.ICANON:
                self._before = now
                tty.setcbreak(self._descriptor, termios.TCSANOW)
            return True
        return False

    def _help(self) -> None:
        self._drawing.tell("\n".join(f"{key}  {words}" for key, (words, _) in self._keys.items()))

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: what is drawn ends first, on another thread; takes no lock, because it interrupts anything."""
        if self._drawing.is_drawn and not self.closed.is_set():
            self._is_stopping = True
            return
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)  # here the process stops, until somebody continues it
        signal.signal(signal.SIGTSTP, self._on_stop)
        self._continued.set()

    def _stop(self) -> None:
        """Stop the process with the terminal as it was before; afterwards all is drawn again, below."""
        self._is_stopping = False
        self._continued.clear()
        with TERMINAL, self._drawing.paused():
            os.kill(os.getpid(), signal.SIGTSTP)
            self._continued.wait(STOP_SECONDS)
