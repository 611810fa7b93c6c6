"""What a test run says of itself: a line whenever it has reported nothing for a while, and at its end what was dear."""

from __future__ import annotations

import os
import sys
import threading
import time
from ast import get_docstring, parse
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SILENT_SECONDS = 8.0
DEAR_SECONDS = 10.0
SHOWN = 10
REASON = "Costs: "
"""Begins the sentence of a docstring that says why a file is dear."""


class Progress:
    """The plugin of the process that reports. It writes from a thread, past the capture of the tests' output."""

    def __init__(self) -> None:
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

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """The files that took longest, if many were tried; without a reason, one that takes long is not worth it."""
        seconds = Counter[str]()
        for report in (each for reports in terminalreporter.stats.values() for each in reports):
            seconds[getattr(report, "nodeid", "").partition("::")[0]] += getattr(report, "duration", 0)
        if len(seconds) <= SHOWN or seconds.total() < DEAR_SECONDS:
            return
        terminalreporter.section(f"the {SHOWN} dearest files")
        for file, took in seconds.most_common(SHOWN):
            lacks_reason = took > DEAR_SECONDS and not _says_why(config.rootpath / file)
            missing = f'  its docstring does not say why ("{REASON}…")' if lacks_reason else ""
            terminalreporter.write_line(f"{took:7.1f} s  {file}{missing}")

    def pytest_unconfigure(self) -> None:
        if self._thread.is_alive():
            self._stop.set()
            self._thread.join()
            os.close(self._output)

    def _write_lines(self) -> None:
        while not self._stop.wait(1):
            now = time.monotonic()
            if now - self._reported >= SILENT_SECONDS:
                self._reported = now
                state = f"running: {', '.join([*self._running])}" if self._running else "no test is running"
                line = f"\n[{now - self._start:.0f} s] {self._ended} tests have ended; {state}\n"
                os.write(self._output, line.encode())


def _says_why(file: Path) -> bool:
    return REASON in (get_docstring(parse(file.read_text(encoding="utf-8"))) or "")
