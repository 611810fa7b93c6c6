"""Limit the time of each test, so that a mutant that never ends still gets the verdict of every test."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Generator
from types import FrameType

import pytest

SECONDS = float(os.environ.get("CODEX_MULTI_ROLE_TEST_SECONDS", "0"))
MOST_OVERDUE = int(os.environ.get("CODEX_MULTI_ROLE_TESTS_OVERDUE", "1"))
LAST_CALL = 1.5
"""After this many times `SECONDS`, the whole process ends."""
IS_FORK = "CODEX_MULTI_ROLE_WARM" in os.environ
"""Whether nobody reads a traceback: then no thread, which takes longer than many a test, waits for each test."""
_overdue: list[str] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    def on_alarm(number: int, frame: FrameType | None) -> None:
        if item.nodeid not in _overdue:
            _overdue.append(item.nodeid)
        if len(_overdue) >= MOST_OVERDUE:
            item.session.shouldstop = f"{MOST_OVERDUE} tests took longer than {SECONDS} s"
        pytest.fail(f"no result after {SECONDS} s", pytrace=False)

    before = signal.signal(signal.SIGALRM, on_alarm)
    # The alarm repeats: a loop that catches everything would have swallowed a single one.
    signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
    _end_process_after(LAST_CALL * SECONDS)
    yield
    _end_process_after(0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def _end_process_after(seconds: float) -> None:
    """End code that never returns to Python, where it would get a signal; with 0, cancel that."""
    if IS_FORK:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    else:
        faulthandler.cancel_dump_traceback_later()
