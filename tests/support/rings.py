"""Rings of tests, by what they start: a ``pure`` test starts no process except git, a ``real`` test may start any.

A test is pure unless it is marked ``real`` or ``long``, or plays whole runs with the scripted Codex. Modules with
little but git are marked ``real`` as well: they take seconds. An audit hook records what is started. It raises nothing,
because the code under test could swallow that: a pure test that started something fails at the end of its teardown.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty")
"""Audit events. The first argument is the program, except for forks, which have none."""
ALLOWED = "git"
BETWEEN = ("subprocess.py", "preloaded.py", "os.py")
"""Files between the place that starts a program and the audit event."""


class Rings:
    """The plugin that marks the pure tests and checks them."""

    def __init__(self) -> None:
        self._started: list[str] = []
        self._started_by_fixture: defaultdict[tuple[Any, str], list[str]] = defaultdict(list)
        self._earlier_threads: set[threading.Thread] = set()
        sys.addaudithook(self._record)

    def _record(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in STARTS or threading.current_thread() in self._earlier_threads:
            return
        program = os.fsdecode(arguments[0]) if arguments else event
        if Path(program).name != ALLOWED:
            frame = sys._getframe(1)
            while Path(frame.f_code.co_filename).name in BETWEEN and frame.f_back:
                frame = frame.f_back
            self._started.append(f"{program} ({frame.f_code.co_filename}:{frame.f_lineno})")

    @pytest.hookimpl(tryfirst=True)  # before `-m` selects tests by their marks
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if "scripted_codex" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.real)
            if {"real", "long"}.isdisjoint(mark.name for mark in item.iter_markers()):
                item.add_marker(pytest.mark.pure)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        """Attribute what a fixture starts to each test that uses it, not only to the first one."""
        outer, self._started = self._started, self._started_by_fixture[request.node, fixturedef.argname]
        try:
            return (yield)
        finally:
            self._started = outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._started = []
        self._earlier_threads = {*threading.enumerate()} - {threading.current_thread()}
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield
        if item.get_closest_marker("pure"):
            owners = [(node, name) for node in item.listchain() for name in getattr(item, "fixturenames", ())]
            started = [*self._started, *(each for owner in owners for each in self._started_by_fixture.get(owner, ()))]
            if started:
                pytest.fail(
                    "a pure test starts no process except git; mark it @pytest.mark.real, or start none of\n  "
                    + "\n  ".join(dict.fromkeys(started)),
                    pytrace=False,
                )
        return result
