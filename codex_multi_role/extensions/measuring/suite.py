"""The tests of a workspace, each run in a private copy and in the sandbox; those whose outcomes differ between runs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from codex_multi_role.checks.contract import CheckContext, MaxSeconds, at_most_own
from codex_multi_role.checks.interpreter import NO_TESTS_COLLECTED
from codex_multi_role.checks.junit_report import TestCase, parse_cases, read_report
from codex_multi_role.checks.process_of_tests import cache_in, environment_of_tests, interpreter_of
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.measuring.measured_process import PLUGIN, MeasuredProcess
from codex_multi_role.extensions.measuring.workspace_copies import copy_workspace, excluded_from_copies
from codex_multi_role.workspace import CommandResult, PathRefused, Workspace, run_command, write_inside

MOST_OVERDUE = 3
"""After this many tests exceed their time limit, the rest is not run (exit code INTERRUPTED)."""
INTERRUPTED = 2
END_SECONDS = 10.0
"""Time to end the last tests and remove the copies, after the deadline."""
LIMIT_VARIABLE, OVERDUE_VARIABLE = "CODEX_MULTI_ROLE_TEST_SECONDS", "CODEX_MULTI_ROLE_TESTS_OVERDUE"
"""Environment variables that ``codex_multi_role_limits`` reads."""


def own_and(seconds: float) -> MaxSeconds:
    """The most that a check takes whose tests end at its own limit, and that needs ``seconds`` afterwards."""
    return lambda options, deadline_seconds: at_most_own(options, deadline_seconds) + seconds


@dataclass(frozen=True)
class SuiteOutcome:
    """The outcome of one run. ``cases`` are the tests by name, None without a report.

    ``problem`` says why there is no report, or why it says nothing about the target. ``complete``: a test missing among
    the cases has failed, because its file could not be collected. ``selected``: the tests to run, None if all.
    """

    ran: CommandResult
    cases: Mapping[str, TestCase] | None
    problem: str = ""
    selected: frozenset[str] | None = None

    @property
    def complete(self) -> bool:
        return self.cases is not None and self.ran.returncode in (0, 1)

    @property
    def bad(self) -> list[str]:
        """The tests that failed or could not be set up."""
        return [name for name, case in (self.cases or {}).items() if case.outcome == "failed"]

    @property
    def longest_seconds(self) -> float:
        """The duration of the slowest test."""
        return max((case.seconds for case in (self.cases or {}).values()), default=0.0)


@dataclass(frozen=True)
class SuiteCopy:
    """A copy of the workspace below ``folder``, and the pytest process that runs in its ``root``."""

    folder: Path
    root: Path
    process: MeasuredProcess
    argv: Sequence[str]
    environment: Mapping[str, str]


class Suite:
    """``tests``, files or folders, are for ``target``, or for nothing in particular if that is empty.

    Both are relative to the workspace; ``files`` are texts added to all copies.
    """

    def __init__(
        self,
        context: CheckContext,
        tests: Sequence[str],
        scratch: Path,
        target: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        self._context, self._tests, self._files = context, list(tests), files or {}
        self.target, self.scratch, self._python = target, scratch, interpreter_of(context)
        self._left_out = excluded_from_copies(context.workspace, [*tests, *filter(None, [target])])
        self._numbers = count(1)

    def run(
        self,
        seconds: float,
        files: Mapping[str, str] | None = None,
        test_seconds: float = 0.0,
        on_start: Callable[[], object] | None = None,
    ) -> SuiteOutcome:
        """Run all tests once, with ``files`` added to the copy, each for at most ``test_seconds`` (0: unlimited).

        ``on_start`` is called as soon as the copy is made. Threads may share a suite. Raises UsageError if Python
        cannot be started, StorageError, RunInterrupted.
        """
        with self.prepared(test_seconds, files) as copy:
            if on_start:
                on_start()
            report = copy.folder / "junit.xml"
            ran = self.run_copy(copy, [f"--junitxml={report}"], seconds)
            return _outcome(ran, report, copy.process.import_problem())

    @contextmanager
    def prepared(self, test_seconds: float, files: Mapping[str, str] | None = None) -> Iterator[SuiteCopy]:
        """A copy of the workspace with ``files``, in a folder that is removed afterwards. Raises StorageError."""
        folder = self.scratch / f"run{next(self._numbers)}"
        folder.mkdir()
        try:
            root = copy_workspace(self._context.workspace, folder, self._left_out)
            write_files(root, {**self._files, **(files or {})})
            process = MeasuredProcess(folder, self._context.workspace.root, root, self.target, self._python)
            process.prepare()
            plugins = [*PLUGIN, "-p", "codex_multi_role_limits"]
            flags = [*cache_in(folder), *plugins, "--continue-on-collection-errors"]
            argv = [str(self._python.path), "-m", "pytest", *flags, *self._tests]
            yield SuiteCopy(folder, root, process, argv, process.environment(self._environment(folder, test_seconds)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run_copy(
        self,
        copy: SuiteCopy,
        arguments: Sequence[str],
        seconds: float,
        variables: Mapping[str, str] | None = None,
        writable: Path | None = None,
    ) -> CommandResult:
        """Run pytest with ``arguments`` in ``copy``. Raises UsageError if Python cannot be started, RunInterrupted.

        It may write to ``writable``, by default the folder of ``copy``.
        """
        argv = self._context.sandbox([*copy.argv, *arguments], writable or copy.folder)
        environment = {**copy.environment, **(variables or {})}
        return run_command(argv, copy.root, environment, seconds, stopping=self._context.stopping)

    def _environment(self, folder: Path, test_seconds: float) -> dict[str, str]:
        limits = {LIMIT_VARIABLE: str(test_seconds), OVERDUE_VARIABLE: str(MOST_OVERDUE)}
        return {**environment_of_tests(self._context, folder, self._python), **limits}


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` below ``root``, a copy of the workspace. Raises StorageError."""
    for name, text in files.items():
        try:
            write_inside(Workspace(root), name, text.encode())
        except (PathRefused, OSError) as error:
            raise StorageError(f"{name} cannot be written into {root}: {error}") from error


def _outcome(ran: CommandResult, report: Path, problem: str) -> SuiteOutcome:
    if ran.timed_out:
        return SuiteOutcome(ran, None, f"no result after {ran.seconds:.0f} s")
    try:
        return SuiteOutcome(ran, parse_cases(read_report(report)), problem)
    except ValueError as error:
        return SuiteOutcome(ran, None, f"{error} (exit code {ran.returncode})")


@dataclass(frozen=True)
class Repeated:
    """``flaky``: the outcomes, run by run, of the tests that differ; ``problem``: why there is no result.

    ``bad`` are the tests that failed every time.
    """

    outcomes: tuple[SuiteOutcome, ...]
    flaky: Mapping[str, list[str]]
    bad: tuple[str, ...]
    problem: str = ""
    timed_out: bool = False

    @property
    def last(self) -> SuiteOutcome:
        return self.outcomes[-1]


def repeat(suite: Suite, runs: int, until: float, on_start: Callable[[], object] | None = None) -> Repeated:
    """Run ``suite`` ``runs`` times, until ``until`` (monotonic). Raises the errors of `Suite.run`."""
    outcomes: list[SuiteOutcome] = []
    for _ in range(runs):
        outcomes.append(suite.run(max(0.0, until - time.monotonic()), on_start=on_start))
        if problem := _problem(outcomes[-1]):
            return Repeated(tuple(outcomes), {}, (), problem, outcomes[-1].ran.timed_out)
    flaky = _differing(outcomes)
    bad = tuple(test for test in outcomes[-1].bad if test not in flaky)
    return Repeated(tuple(outcomes), flaky, bad)


def _problem(outcome: SuiteOutcome) -> str:
    if outcome.cases is None:
        return f"the tests did not finish: {outcome.problem}"
    if outcome.ran.returncode == NO_TESTS_COLLECTED or not outcome.cases:
        return "pytest found no test"
    if outcome.problem:
        return outcome.problem
    return "" if outcome.complete else f"the tests did not finish: exit code {outcome.ran.returncode}"


def _differing(outcomes: list[SuiteOutcome]) -> dict[str, list[str]]:
    """By test, the outcomes that differ; ``missing`` in the runs that do not report the test."""
    cases = [outcome.cases or {} for outcome in outcomes]
    names = dict.fromkeys(name for each in cases for name in each)
    seen = {name: [each[name].outcome if name in each else "missing" for each in cases] for name in names}
    return {name: results for name, results in seen.items() if len(set(results)) > 1}
