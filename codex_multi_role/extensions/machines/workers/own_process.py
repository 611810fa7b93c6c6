"""A process of ours that works on one run and reports in lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.host.own_python import Lifetime, start

STOP_SECONDS = 90.0
"""How long a process has to stop before it is killed: a run interrupts its turns and saves its state."""
STUCK_SECONDS = 60.0
CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 4 << 20
MAX_CHUNKS = 64
"""How much of one process's output is read before it is another's turn."""


class OwnProcess:
    """A process of ours that ends with this one, and reports in lines. Only one thread may read them."""

    def __init__(self, command: list[str], order: Mapping[str, Any], log: Path) -> None:
        self._process = start(command, Lifetime.ENDS_WITH_US, json.dumps(order), log)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._leash, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self.fileno(), False)
        self._rest = b""
        self.is_silent = False  # once all that it can report was read

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def fileno(self) -> int:
        """What is readable when `lines` has more."""
        return self._output.fileno()

    def lines(self) -> Iterator[bytes]:
        """What it has reported since the last call, without waiting."""
        for _ in range(MAX_CHUNKS):
            try:
                chunk = os.read(self.fileno(), CHUNK_BYTES)  # waits: for nothing: it was set not to block
            except BlockingIOError:
                return
            if not chunk:
                self.is_silent = True
                return
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if len(self._rest) > MAX_LINE_BYTES:
                self._rest = b""
            yield from lines

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Ask it to stop so that its work can be continued."""
        self._leash.close()

    def close(self) -> list[bytes]:
        """Wait for its end, and kill it if that takes too long; returns the last lines."""
        self.stop()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        with self._output:
            return [*self.lines()]


def stop_at_end_of(descriptor: int) -> None:
    """Stop this process once the pipe ``descriptor`` ends: the process at its other end has ended, or wants that.

    What is in the pipe means nothing. The stop is that of SIGTERM; after `STUCK_SECONDS` the process is killed.
    """
    threading.Thread(target=_stop_at_end_of, args=(descriptor,), name="starter", daemon=True).start()


def _stop_at_end_of(descriptor: int) -> None:
    while os.read(descriptor, CHUNK_BYTES):  # waits: for the process that started it, ended with it
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STUCK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
