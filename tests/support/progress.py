"""A line of progress whenever a test run has reported nothing for a while: during collection, and in long tests."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

SILENT_SECONDS = 8.0


class Progress:
    """The plugin of the process that reports. It writes from a thread, past the capture of the tests' output."""

    def __init__(self, silent_seconds: float = SILENT_SECONDS) -> None:
        self._silent_seconds = silent_seconds
        self._start = self._reported = time.monotonic()
        self._ended = 0
        self._running: dict[str, None] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_lines, name="test progress", daemon=True)

    def pytest_sessionstart(self) -> None:
        self._output = os.dup(sys.stdout.fileno())
        self._thread.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._reported = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._running.pop(nodeid, None)
        self._ended += 1

    def pytest_unconfigure(self) -> None:
        if self._thread.is_alive():
            self._stop.set()
            self._thread.join()
            os.close(self._output)

    def _write_lines(self) -> None:
        while not self._stop.wait(1):
            now = time.monotonic()
            if now - self._reported >= self._silent_seconds:
                self._reported = now
                state = f"running: {', '.join([*self._running])}" if self._running else "no test is running"
                line = f"\n[{now - self._start:.0f} s] {self._ended} tests have ended; {state}\n"
                os.write(self._output, line.encode())
