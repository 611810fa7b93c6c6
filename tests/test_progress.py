"""A test run that reports nothing for a while says what it waits for."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support.progress import Progress

TEST = "tests/test_x.py::test_slow"


def test_silence_is_broken_by_a_line_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours) as lines, os.fdopen(theirs, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        plugin = Progress(silent_seconds=0.0)
        plugin.pytest_runtest_logstart("tests/test_x.py::test_fast")
        plugin.pytest_runtest_logfinish("tests/test_x.py::test_fast")
        plugin.pytest_runtest_logstart(TEST)
        plugin.pytest_sessionstart()
        try:
            assert lines.readline() == "\n"
            assert lines.readline().endswith(f"1 tests have ended; running: {TEST}\n")
        finally:
            plugin.pytest_unconfigure()
