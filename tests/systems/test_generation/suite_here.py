"""Suites that run in this process: the many Pythons that real ones start take nearly all of a merge's time.

A test here is a function without arguments, and the target a module of its own.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.coverage_report import Measured, Reached
from codex_multi_role.checks.coverage_run import CoverageOutcome
from codex_multi_role.checks.junit_report import TestCase
from codex_multi_role.checks.suite import SuiteOutcome
from codex_multi_role.systems.test_generation import measured_tests, mutation, prune_tests
from codex_multi_role.workspace import CommandResult

MARK = "<target>"


@pytest.fixture
def suites_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever measures tests or judges mutants starts no process."""
    for module in (measured_tests, mutation, prune_tests):
        monkeypatch.setattr(module, "Suite", SuiteHere)
    monkeypatch.setattr(measured_tests, "CoverageRun", CoverageHere)


class SuiteHere:
    """As `codex_multi_role.checks.suite.Suite`."""

    def __init__(
        self,
        context: CheckContext,
        tests: Sequence[str],
        scratch: Path,
        target: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        root = context.workspace.root
        folders = [path for each in tests for path in (root / each).rglob("test_*.py")]
        there = [root / target, *folders, *(root / each for each in tests if (root / each).is_file())]
        self._texts = {path.relative_to(root).as_posix(): path.read_text() for path in there} | dict(files or {})
        self._target = target

    def run(self, seconds: float, files: Mapping[str, str] | None = None, test_seconds: float = 0.0) -> SuiteOutcome:
        tests = collected({**self._texts, **(files or {})}, self._target)
        cases = {name: TestCase("passed" if passes(test) else "failed", 0.0) for name, test in tests}
        failed = any(case.outcome == "failed" for case in cases.values())
        return SuiteOutcome(CommandResult(int(failed), "", False, 0.0, False), cases)


class CoverageHere:
    """As `codex_multi_role.checks.coverage_run.CoverageRun`, of lines only."""

    def __init__(
        self,
        context: CheckContext,
        target: str,
        tests: Sequence[str],
        scratch: Path,
        files: Mapping[str, str],
        per_test: bool,
    ) -> None:
        self._texts, self._target = {target: (context.workspace.root / target).read_text(), **files}, target

    def outcome(self, seconds: float) -> CoverageOutcome:
        reached = {}
        for name, test in collected(self._texts, self._target):
            lines = lines_of(test)
            if lines is None:
                return CoverageOutcome("failed", f"{name} fails")
            reached[name] = Reached(frozenset((self._target, line) for line in lines), frozenset())
        every = lines_in(compile(self._texts[self._target], MARK, "exec"))
        seen = {line for each in reached.values() for _, line in each.lines}
        return CoverageOutcome("passed", measured=Measured(round(100 * len(seen) / len(every), 2)), reached=reached)


def collected(texts: Mapping[str, str], target: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """The tests of all ``texts`` but the target's, by the names that pytest gives them."""
    module = ModuleType(__name__)  # one that is there: dataclasses look theirs up
    exec(compile(texts[target], MARK, "exec"), module.__dict__)

    def load(name: str, *given: Any) -> Any:
        return module if name == Path(target).stem else builtins.__import__(name, *given)

    for path in (path for path in texts if path != target):
        names: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": load}, "__name__": path}
        exec(compile(texts[path], path, "exec"), names)
        place = path.removesuffix(".py").replace("/", ".")
        yield from ((f"{place}::{name}", test) for name, test in names.items() if name.startswith("test_"))


def passes(test: Callable[[], object]) -> bool:
    try:
        test()
    except Exception:
        return False
    return True


def lines_of(test: Callable[[], object]) -> set[int] | None:
    """The lines of the target that the test reaches; None if it fails."""
    lines = set[int]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != MARK:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return lines if passes(test) else None
    finally:
        sys.settrace(before)


def lines_in(code: CodeType) -> set[int]:
    """The lines within the functions of ``code``."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    own = {line for each in inner for *_, line in each.co_lines() if line and line != each.co_firstlineno}
    return own.union(*map(lines_in, inner))
