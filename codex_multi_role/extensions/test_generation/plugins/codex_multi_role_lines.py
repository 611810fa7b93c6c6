"""Record which lines of one file each test reaches, and which tests may depend on the file in other ways.

What a fixture of a wider scope reaches counts for every test that names the fixture, because only the first of them
sets it up. Loaded into a process that collects tests once and runs them in forks (``codex_multi_role_warm``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

TARGET = os.path.realpath(os.environ["CODEX_MULTI_ROLE_WARM_TARGET"])
OUTSIDE = ""
FIXTURE = "fixture "
FORKS = {"os.fork", "os.forkpty"}
STARTING = {*FORKS, "os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "pty.spawn"}


@dataclass
class Reach:
    """``lines``: the tests that reach each line. ``outside``: lines reached outside of tests, on import above all.

    ``always``: tests that start a program, which may import the file, or read the file's text. ``problem``: why the
    record is incomplete, if it is.
    """

    lines: dict[int, set[str]] = field(default_factory=dict)
    outside: set[int] = field(default_factory=set)
    always: set[str] = field(default_factory=set)
    problem: str = ""

    def add(self, other: Reach) -> None:
        for line, tests in other.lines.items():
            self.lines.setdefault(line, set()).update(tests)
        self.outside |= other.outside
        self.always |= other.always
        self.problem = self.problem or other.problem

    def as_json(self) -> dict[str, Any]:
        lines = [[line, sorted(tests)] for line, tests in self.lines.items()]
        return {"lines": lines, "outside": [*self.outside], "always": [*self.always], "problem": self.problem}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reach:
        lines = {line: set(tests) for line, tests in data["lines"]}
        return cls(lines, set(data["outside"]), set(data["always"]), data["problem"])

    def tests(self, lines: Iterable[int]) -> set[str]:
        """The tests that a change of these lines can affect."""
        return self.always.union(*(self.lines.get(line, ()) for line in lines))


class LineRecorder:
    """Records from its creation until `stop`; `here` is the test or fixture that runs now, or `OUTSIDE`."""

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[TARGET], messages=False)
        self._coverage.start()
        self._tracer = sys.gettrace()
        self._special: set[str] = set()
        self._fixtures: frozenset[str] = frozenset()
        self.here = OUTSIDE
        self.problem = ""
        self.is_on = self.is_noting = True
        sys.addaudithook(self._note)

    def enter(self, here: str, fixtures: Iterable[str] | None = None) -> str:
        """From now on ``here`` runs; returns what ran before."""
        before, self.here = self.here, here
        if fixtures is not None:
            self._fixtures = frozenset(fixtures)
        if sys.gettrace() is not self._tracer:
            self.problem = f"{before or 'the import'} replaces the trace function"
        else:
            self._coverage.switch_context(here)
        return before

    def context_of(self, fixture: str) -> str:
        """A fixture that a test asks for only while it runs may serve any other test, too."""
        return f"{FIXTURE}{fixture}" if fixture in self._fixtures else OUTSIDE

    def stop(self) -> None:
        self.is_on = False
        self._coverage.stop()

    def reach(self, items: Iterable[pytest.Item]) -> Reach:
        """What was reached, as the node ids of ``items``."""
        users: dict[str, set[str]] = {}
        for item in items:
            users[item.nodeid] = {item.nodeid}
            for name in getattr(item, "fixturenames", ()):
                users.setdefault(f"{FIXTURE}{name}", set()).add(item.nodeid)
        found = Reach(problem=self.problem)
        data = self._coverage.get_data()
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                found.lines[line] = set[str]().union(*(users.get(each, set()) for each in contexts))
                if OUTSIDE in contexts:
                    found.outside.add(line)
        found.always = set[str]().union(*(users.get(each, set()) for each in self._special))
        if OUTSIDE in self._special:
            found.problem = found.problem or "a program that may import the file is started on import"
        return found

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not (self.is_on and self.is_noting):
            return
        if event in STARTING:
            if self.here or event in FORKS or "python" in repr(arguments[:2]):
                self._special.add(self.here)
        elif event == "open" and self.here and Path(TARGET).name in str(arguments[0]):
            self._special.add(self.here)


recorder = LineRecorder()


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    if recorder.is_on:
        recorder.enter(item.nodeid, getattr(item, "fixturenames", ()))
    yield
    if recorder.is_on:
        recorder.enter(OUTSIDE)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None]:
    if not recorder.is_on or fixturedef.scope == "function":
        yield
        return
    before = recorder.enter(recorder.context_of(fixturedef.argname))
    yield
    recorder.enter(before)
