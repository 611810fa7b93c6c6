"""One run of tests under coverage.py, in a private copy of the workspace and in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_multi_role.checks.artifacts import write_artifact
from codex_multi_role.checks.base import CheckContext
from codex_multi_role.checks.coverage_report import NOTHING, Measured, Reached, parse_coverage, parse_reached
from codex_multi_role.checks.junit import TestCounts, parse_report, read_report
from codex_multi_role.checks.python import NO_TESTS_COLLECTED, TESTS_FAILED, environment_of_tests, python_of
from codex_multi_role.checks.suite import PLUGINS, with_plugins, write_files
from codex_multi_role.checks.working_copy import copy_workspace
from codex_multi_role.workspace import CommandResult, run_command

REPORT_SECONDS = 30.0
"""For coverage.py to write its report, after the tests' own deadline."""
MAX_TESTS = 400
"""Of so many it is told what each of them reaches."""
SETTINGS = "[run]\nbranch = True\nrelative_files = True\ndata_file = {data}\nsource = {source}\n"


@dataclass(frozen=True)
class Outcome:
    """``status`` is passed, failed, no tests, syntax error, crashed, timed out or could not run.

    ``reached`` is by test, and empty unless it was asked for.
    """

    status: str
    reason: str = ""
    ran: CommandResult | None = None
    counts: TestCounts = field(default_factory=TestCounts)
    measured: Measured = NOTHING
    reached: Mapping[str, Reached] = field(default_factory=dict)

    @property
    def crashed(self) -> bool:
        """Whether some test has no outcome."""
        return self.status not in ("passed", "failed")


def judge(ran: CommandResult, counts: TestCounts | None, broken: str) -> Outcome:
    """From pytest's exit code **and** its report; ``counts`` is None where there is none, and ``broken`` says why."""
    status, reason = _verdict(ran, counts, broken)
    return Outcome(status, reason, ran, counts or TestCounts())


def _verdict(ran: CommandResult, counts: TestCounts | None, broken: str) -> tuple[str, str]:
    code = ran.returncode
    if ran.timed_out:
        return "timed out", f"no end after {ran.seconds:.0f} s"
    if code == NO_TESTS_COLLECTED:
        return "no tests", "pytest found no test"
    if code not in (0, TESTS_FAILED):
        return "crashed", f"pytest ended with exit code {code}"
    if counts is None:
        return "crashed", broken
    if counts.failed or counts.errors:
        return "failed", ""
    return ("passed", "") if code == 0 else ("crashed", "pytest ended with exit code 1 although no test failed")


class CoverageRun:
    """``target`` and ``tests`` are relative to the workspace; everything the run needs is made below ``scratch``.

    The private copy has ``files`` besides. ``per_test`` also notes which test reached what.
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
        self._root = copy_workspace(context.workspace, scratch)
        write_files(self._root, files or {})
        # The quickest way to measure (Python 3.14) sees each line once, whichever test reaches it next.
        noting = {"COVERAGE_CORE": "ctrace"} if per_test else {}
        self._environment = with_plugins({**environment_of_tests(context, scratch), **noting}, self._root)
        self._settings = scratch / "coverage.ini"

    def outcome(self, seconds: float) -> Outcome:
        """Raises UsageError when Python cannot be started, StorageError, RunInterrupted."""
        source = self._root / self._target
        measured = source if source.is_dir() else source.parent
        self._settings.write_text(SETTINGS.format(data=self._scratch / "coverage.data", source=measured))
        junit = self._scratch / "junit.xml"
        noting = ["-p", "codex_multi_role_contexts"] if self._per_test else []
        pytest = ["-m", "pytest", "-p", "no:cacheprovider", *noting, f"--junitxml={junit}", *self._tests]
        ran = self._coverage("run", pytest, seconds)
        outcome = self._with_coverage(judge(ran, *self._counts(junit)))
        return self._with_reached(outcome) if self._per_test and not outcome.crashed else outcome

    def _coverage(self, command: str, arguments: list[str], seconds: float) -> CommandResult:
        return self._python(["-m", "coverage", command, f"--rcfile={self._settings}", *arguments], seconds)

    def _python(self, arguments: list[str], seconds: float) -> CommandResult:
        sandboxed = self._context.sandbox([python_of(self._context.workspace), *arguments], self._scratch)
        return run_command(sandboxed, self._root, self._environment, seconds, stopping=self._context.stopping)

    def _counts(self, junit: Path) -> tuple[TestCounts | None, str]:
        try:
            return parse_report(self._kept(junit, "JUnit report")), ""
        except ValueError as error:
            return None, str(error)

    def _with_coverage(self, outcome: Outcome) -> Outcome:
        """The report has a command of its own: what was reached until a deadline counts as well."""
        report = self._scratch / "coverage.json"
        said = self._coverage("json", [f"--include={self._included}", "-o", str(report)], REPORT_SECONDS).output
        try:
            return replace(outcome, measured=parse_coverage(self._kept(report, "coverage report")))
        except ValueError as error:
            if outcome.crashed:
                return outcome
            last_line = (said.strip().splitlines() or ["no output"])[-1]
            return replace(outcome, status="crashed", reason=f"{error}: {last_line}")

    def _with_reached(self, outcome: Outcome) -> Outcome:
        report = self._scratch / "reached.json"
        program = str(PLUGINS / "codex_multi_role_reached.py")
        self._python([program, str(self._settings), self._included, str(report), str(MAX_TESTS)], REPORT_SECONDS)
        try:
            return replace(outcome, reached=parse_reached(read_report(report, "report of what each test reached")))
        except ValueError as error:
            return replace(outcome, status="crashed", reason=str(error))

    @property
    def _included(self) -> str:
        return f"{self._target}/*" if (self._root / self._target).is_dir() else self._target

    def _kept(self, report: Path, kind: str) -> bytes:
        """What the sandbox left, and a copy of it for people. Raises ValueError where there is nothing to read."""
        content = read_report(report, kind)
        write_artifact(self._context, report.name, content.decode("utf-8", "replace"))
        return content
