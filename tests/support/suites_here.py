"""Suites that run in this process: the many Pythons that real ones start take nearly all of a merge's time.

A test here is a function without arguments, and the target a module of its own.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.junit_report import TestCase, TestCounts
from codex_multi_role.extensions.measuring import coverage
from codex_multi_role.extensions.measuring.coverage_report import Measured, Reached
from codex_multi_role.extensions.measuring.coverage_run import CoverageOutcome, Status
from codex_multi_role.extensions.measuring.suite import SuiteOutcome
from codex_multi_role.extensions.test_generation import kill_matrix, measured_tests, mutation, prune_tests
from codex_multi_role.workspace import CommandResult

TRACING = threading.Lock()
MARK = "<target>"


@pytest.fixture
def suites_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever measures tests or judges mutants starts no process."""
    for module in (measured_tests, mutation, prune_tests):
        monkeypatch.setattr(module, "Suite", SuiteHere)
    monkeypatch.setattr(kill_matrix, "run_warm", lambda *_: {})
    for measures in (measured_tests, coverage):
        monkeypatch.setattr(measures, "CoverageRun", CoverageHere)


class SuiteHere:
    """As `codex_multi_role.extensions.measuring.suite.Suite`."""

    def __init__(
        self,
        context: CheckContext,
        tests: Sequence[str],
        scratch: Path,
        target: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        self._texts = texts_of(context, [target, *tests], files)
        self._target = target

    def run(self, seconds: float, files: Mapping[str, str] | None = None, *_: object, **__: object) -> SuiteOutcome:
        tests = collected({**self._texts, **(files or {})}, self._target)
        cases = {name: TestCase("failed" if traced(test, set()) else "passed", 0.0) for name, test in tests}
        failed = any(case.outcome == "failed" for case in cases.values())
        return SuiteOutcome(CommandResult(int(failed), "", False, 0.0, False), cases)


class CoverageHere:
    """As `codex_multi_role.extensions.measuring.coverage_run.CoverageRun`, of lines only."""

    def __init__(
        self,
        context: CheckContext,
        target: str,
        tests: Sequence[str],
        scratch: Path,
        files: Mapping[str, str] | None = None,
        per_test: bool = False,
    ) -> None:
        self._texts, self._target = texts_of(context, [target, *tests], files), target

    def outcome(self, seconds: float) -> CoverageOutcome:
        lines, errors = dict[str, set[int]](), dict[str, BaseException]()
        for name, test in collected(self._texts, self._target):
            lines[name] = set()
            if error := traced(test, lines[name]):
                errors[name] = error
        every = lines_in(compile(self._texts[self._target], MARK, "exec"))
        measured = Measured(round(100 * len(set[int]().union(*lines.values())) / len(every), 2))
        failures = [{"test": name, "message": f"{type(error).__name__}: {error}"} for name, error in errors.items()]
        counts = TestCounts(passed=len(lines) - len(errors), failed=len(errors), failures=failures)
        status: Status = "failed" if errors else "passed" if lines else "no tests"
        reached = {
            name: Reached(frozenset((self._target, each) for each in own), frozenset()) for name, own in lines.items()
        }
        return CoverageOutcome(status, counts=counts, measured=measured, reached=reached)


def texts_of(context: CheckContext, paths: Sequence[str], files: Mapping[str, str] | None) -> dict[str, str]:
    """The texts at ``paths``, of which folders stand for the tests below, and ``files``."""
    root = context.workspace.root
    below = [path for each in paths for path in (root / each).rglob("test_*.py")]
    there = [*below, *(root / each for each in paths if (root / each).is_file())]
    return {path.relative_to(root).as_posix(): path.read_text() for path in there} | dict(files or {})


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


def traced(test: Callable[[], object], lines: set[int]) -> Exception | None:
    """What the test raises; ``lines`` get those of the target that it reaches."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != MARK:
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    _set_trace(trace)
    try:
        test()
    except Exception as error:
        return error
    finally:
        _set_trace(before)
    return None


def _set_trace(function: Any) -> None:
    """Set the thread's trace function; Python refuses to do that in two threads at once."""
    with TRACING:
        sys.settrace(function)


def lines_in(code: CodeType) -> set[int]:
    """The lines within the functions of ``code``."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    own = {line for each in inner for *_, line in each.co_lines() if line and line != each.co_firstlineno}
    return own.union(*map(lines_in, inner))
