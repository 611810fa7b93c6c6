"""One run of tests under coverage.py, in a private copy of the workspace and in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.interpreter import NO_TESTS_COLLECTED, TESTS_FAILED
from codex_multi_role.checks.junit_report import MAX_FAILURES, TestCounts, junit_name, parse_report, read_report
from codex_multi_role.checks.process_of_tests import cache_in, environment_of_tests, interpreter_of
from codex_multi_role.checks.session_report import FILE, VARIABLE, SessionReport
from codex_multi_role.checks.session_report import PLUGIN as OUTCOMES
from codex_multi_role.extensions.measuring.coverage_report import (
    NOTHING,
    Measured,
    Reached,
    parse_coverage,
    parse_reached,
)
from codex_multi_role.extensions.measuring.imports import PLUGINS
from codex_multi_role.extensions.measuring.measured_process import PLUGIN, MeasuredProcess
from codex_multi_role.extensions.measuring.suite import (
    INTERRUPTED,
    LIMIT_VARIABLE,
    MOST_OVERDUE,
    OVERDUE_VARIABLE,
    write_files,
)
from codex_multi_role.extensions.measuring.workspace_copies import copy_workspace, excluded_from_copies
from codex_multi_role.workspace import CommandResult, run_command

REPORT_SECONDS = 30.0
"""Time for coverage.py to write its report, after the tests' own deadline."""
MOST_LOST = 5
"""Maximum number of tests that end the whole process and are excluded one by one; with more, the run gives up."""
TESTS_AT_LEAST = 4
"""A single test gets the time for all divided by this, and at least `LEAST_SECONDS`."""
LEAST_SECONDS = 1.0
MAX_TESTS = 400
"""Maximum number of tests for which `reached` is reported."""
WHOLE_PERCENT = 100.0
NOT_COUNTED = "the tests start another Python process, whose lines do not count: call the code directly"
NO_DATA = "No data to report."
OMITTED = "the project's coverage settings omit it: change `omit` there, or choose another target"

Status = Literal["passed", "failed", "no tests", "syntax error", "crashed", "timed out", "could not run"]


@dataclass(frozen=True)
class CoverageOutcome:
    """``reached`` is by test, and empty unless requested; ``left_behind``: what tests leave, such as a thread."""

    status: Status
    reason: str = ""
    ran: CommandResult | None = None
    counts: TestCounts = field(default_factory=TestCounts)
    measured: Measured = NOTHING
    reached: Mapping[str, Reached] = field(default_factory=dict)
    left_behind: Mapping[str, str] = field(default_factory=dict)

    @property
    def crashed(self) -> bool:
        """Whether some test has no outcome."""
        return self.status not in ("passed", "failed")


def judge(ran: CommandResult, counts: TestCounts | None, broken: str, lost: Mapping[str, str]) -> CoverageOutcome:
    """Judge pytest's exit code **and** its report; without one ``counts`` is None, and ``broken`` says why.

    ``lost``: by pytest's id, the tests that were excluded because they ended the pytest process, and a message.
    """
    if lost and (counts := counts or (TestCounts() if ran.returncode == NO_TESTS_COLLECTED else None)):
        failures = [{"test": junit_name(test), "message": message} for test, message in lost.items()]
        failures = [*failures, *counts.failures][:MAX_FAILURES]
        counts = replace(counts, failed=counts.failed + len(lost), failures=failures)
    status, reason = _verdict(ran, counts, broken)
    return CoverageOutcome(status, reason, ran, counts or TestCounts())


def _loss_message(ran: CommandResult) -> str:
    if ran.timed_out:
        return f"no result after {ran.seconds:.0f} s; the tests were rerun without it"
    output = f": {ran.output.strip().splitlines()[-1][:300]}" if ran.output.strip() else ""
    return f"it ended the whole test process (exit code {ran.returncode}){output}; the tests were rerun without it"


def _verdict(ran: CommandResult, counts: TestCounts | None, broken: str) -> tuple[Status, str]:
    code = ran.returncode
    if ran.timed_out:
        return "timed out", f"no result after {ran.seconds:.0f} s"
    if code == NO_TESTS_COLLECTED and not (counts and counts.failed):
        return "no tests", "pytest found no test"
    if code == INTERRUPTED and counts and counts.failed and not counts.errors:
        return "failed", "too many tests did not finish; the rest were not run"
    if code not in (0, TESTS_FAILED, NO_TESTS_COLLECTED):
        return "crashed", f"pytest ended with exit code {code}"
    if counts is None:
        return "crashed", broken
    if counts.failed or counts.errors:
        return "failed", ""
    return ("passed", "") if code == 0 else ("crashed", "pytest ended with exit code 1 although no test failed")


class CoverageRun:
    """``target`` and ``tests`` are relative to the workspace; the run creates all its files below ``scratch``.

    ``files`` are added to the private copy. ``per_test`` also records which test reached what.
    """

    def __init__(
        self,
        context: CheckContext,
        target: str,
        tests: Sequence[str],
        scratch: Path,
        files: Mapping[str, str] | None = None,
        per_test: bool = False,
    ) -> None:
        self._context, self._target, self._tests, self._scratch = context, target, list(tests), scratch
        self._per_test = per_test
        self._root = copy_workspace(
            context.workspace, scratch, excluded_from_copies(context.workspace, [target, *tests])
        )
        write_files(self._root, files or {})
        self._python = interpreter_of(context)
        self._process = MeasuredProcess(scratch, context.workspace.root, self._root, target, self._python)
        # The fastest core (Python 3.14) records each line once, even if other tests reach it later.
        extra = {"COVERAGE_CORE": "ctrace"} if per_test else {}
        environment = self._process.environment(environment_of_tests(context, scratch, self._python))
        self._environment = {**environment, **extra}
        self._settings, self._data = scratch / "coverage.ini", scratch / "coverage.data"

    def outcome(self, seconds: float) -> CoverageOutcome:
        """Run the tests. Raises UsageError if Python cannot be started, StorageError, RunInterrupted."""
        junit = self._scratch / "junit.xml"
        extra = ["-p", "codex_multi_role_contexts"] if self._per_test else []
        plugins = [*PLUGIN, "-p", "codex_multi_role_limits", "-p", OUTCOMES, *extra]
        pytest = ["-m", "pytest", *cache_in(self._scratch), *plugins, f"--junitxml={junit}", *self._tests]
        outcome = self._with_coverage(self._run_tests(pytest, junit, seconds))
        left = {junit_name(test): what for test, what in self._process.noted("left.json").items()}
        outcome = replace(outcome, left_behind=left)
        return self._with_reached(outcome) if self._per_test and not outcome.crashed else outcome

    def _run_tests(self, pytest: list[str], junit: Path, seconds: float) -> CoverageOutcome:
        """Run the tests; if one ends the whole process, run the others again in the time that is left."""
        until = time.monotonic() + seconds
        own_seconds = max(LEAST_SECONDS, seconds / TESTS_AT_LEAST)
        self._environment |= {LIMIT_VARIABLE: str(own_seconds), OVERDUE_VARIABLE: str(MOST_OVERDUE)}
        self._environment |= {VARIABLE: str(self._scratch / FILE)}
        lost: dict[str, str] = {}
        while True:
            self._process.prepare(lost)
            for file in (junit, self._scratch / FILE):
                file.unlink(missing_ok=True)
            ran = self._run([*self._program, *pytest], max(0.0, until - time.monotonic()))
            outcome = judge(ran, *self._counts(junit), lost)
            test, running_seconds = self._process.running()
            blamed = bool(test) and (not ran.timed_out or running_seconds >= own_seconds)
            if not blamed or test in lost or len(lost) == MOST_LOST or time.monotonic() >= until:
                return outcome
            lost[test] = _loss_message(ran)

    def _coverage(self, command: str, arguments: list[str], seconds: float) -> CommandResult:
        return self._run(["-m", "coverage", command, f"--rcfile={self._settings}", *arguments], seconds)

    def _run(self, arguments: list[str], seconds: float) -> CommandResult:
        sandboxed = self._context.sandbox([str(self._python.path), *arguments], self._scratch)
        return run_command(sandboxed, self._root, self._environment, seconds, stopping=self._context.stopping)

    def _counts(self, junit: Path) -> tuple[TestCounts | None, str]:
        try:
            counts = parse_report(self._kept(junit, "JUnit report"))
            return SessionReport.read(self._scratch, None).counted(counts), ""
        except ValueError as error:
            return None, str(error)

    def _with_coverage(self, outcome: CoverageOutcome) -> CoverageOutcome:
        """Report by a separate command, so that what was reached before a deadline counts as well."""
        report, is_parallel = self._scratch / "coverage.json", any(self._scratch.glob(f"{self._data.name}.*"))
        if is_parallel:
            self._coverage("combine", [], REPORT_SECONDS)
        output = self._coverage("json", [f"--include={self._included}", "-o", str(report)], REPORT_SECONDS).output
        try:
            measured = parse_coverage(self._kept(report, "coverage report"))
        except ValueError as error:
            last_line = (output.strip().splitlines() or ["no output"])[-1]
            reason = f"{self._target}: {OMITTED}" if last_line == NO_DATA else f"{error}: {last_line}"
            return outcome if outcome.crashed else replace(outcome, status="crashed", reason=reason)
        if outcome.crashed:
            return replace(outcome, measured=measured) if measured.percent else outcome
        if problem := self._process.import_problem(measured.unseen):
            return replace(outcome, status="crashed", reason=problem)
        is_whole = measured.percent is None or measured.percent >= WHOLE_PERCENT
        if not is_whole and not is_parallel and self._process.started_another:
            return replace(outcome, status="crashed", reason=NOT_COUNTED)
        return replace(outcome, measured=measured)

    def _with_reached(self, outcome: CoverageOutcome) -> CoverageOutcome:
        report = self._scratch / "reached.json"
        program = str(PLUGINS / "codex_multi_role_reached.py")
        self._run([program, str(self._settings), self._included, str(report), str(MAX_TESTS)], REPORT_SECONDS)
        try:
            return replace(outcome, reached=parse_reached(read_report(report, "report of the coverage of each test")))
        except ValueError as error:
            return replace(outcome, status="crashed", reason=str(error))

    @property
    def _program(self) -> list[str]:
        """What runs a module under coverage.py, with the folder of the target as the source."""
        source = self._root / self._target
        folder = source if source.is_dir() else source.parent
        return [str(PLUGINS / "codex_multi_role_settings.py"), *map(str, (self._settings, self._data, folder))]

    @property
    def _included(self) -> str:
        path = Path(self._target)
        return (path / "*" if (self._root / path).is_dir() else path).as_posix()

    def _kept(self, report: Path, kind: str) -> bytes:
        """Read what the sandbox left, and keep a copy for people. Raises ValueError if it cannot be read."""
        content = read_report(report, kind)
        self._context.write_artifact(report.name, content.decode("utf-8", "replace"))
        return content
