"""The check ``tests``: run pytest on the workspace; judge by its exit code and its JUnit report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, declare_check
from codex_multi_role.checks.interpreter import NO_TESTS_COLLECTED, PYTEST, TESTS_FAILED, Interpreter
from codex_multi_role.checks.junit_report import CountedTests, TestCounts, parse_report, read_report
from codex_multi_role.checks.measured_process import cache_in, environment_of_tests, interpreter_of
from codex_multi_role.checks.working_copy import scratch_folder
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace import CommandResult, run_command

MAX_TAIL_CHARACTERS = 4_000
SHOWN_TESTS = 3
"""How many tests a reason names."""


Status = Literal["passed", "failed", "no tests", "timed out", "could not run"]


class PytestResult(CountedTests):
    """``verdict``: ``passed`` if no failure is new; ``status`` is pytest's own.

    New is what fails now and did not before the first turn, and what passed then and no longer runs. It is tried once
    more: what is green then is ``flaky``. ``removed``: what failed before and no longer runs. All are numbers; the
    ids are in the fields with ``_tests``. ``without_baseline``: why every failure counts as new.
    """

    bad = ("failed", "timed out")

    status: Status
    command: str
    verdict: Status | Literal[""] = ""
    new_failures: int = 0
    new_failures_tests: list[str] = Field(default_factory=list)
    still_failing: int = 0
    still_failing_tests: list[str] = Field(default_factory=list)
    fixed: int = 0
    fixed_tests: list[str] = Field(default_factory=list)
    removed: int = 0
    removed_tests: list[str] = Field(default_factory=list)
    flaky: int = 0
    flaky_tests: list[str] = Field(default_factory=list)
    without_baseline: str = ""

    @classmethod
    def why_bad(cls, result: Mapping[str, Any]) -> str:
        """A new failure, or its time limit."""
        verdict = str(result.get("verdict") or result["status"])
        if verdict not in cls.bad:
            return ""
        new = [str(test) for test in result.get("new_failures_tests") or ()]
        why = f"new failures: {', '.join(new[:SHOWN_TESTS])}" if new else str(result.get("reason") or "")
        more = f" and {len(new) - SHOWN_TESTS} more" if len(new) > SHOWN_TESTS else ""
        return f"{verdict}: {why}{more}" if why else verdict


def _twice(options: Mapping[str, object], deadline_seconds: float) -> float:
    """New failures are tried once more."""
    return 2 * deadline_seconds


class PytestOptions(CheckOptions):
    """``pytest_cmd``: a command line; by default pytest of the project's Python, which is active in any case."""

    pytest_cmd: str = Field(default="", description="a command line: pytest -x tests")


@declare_check(options=PytestOptions, result=PytestResult, read_only=True, max_seconds=_twice)
def run_tests(context: CheckContext) -> PytestResult:
    """Run the workspace's tests; write ``pytest_output.txt``, ``pytest_rc.txt``, ``junit.xml`` and ``result.json``.

    Options: `PytestOptions`. Raises StorageError if the artifacts cannot be written; a bad verdict is a result.
    """
    try:
        context.folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder(context.workspace) as scratch:
            return _run_in(scratch, context)
    except OSError as error:
        raise StorageError(f"{context.folder}: the test result cannot be written: {error.strerror}") from error


def _run_in(scratch: Path, context: CheckContext) -> PytestResult:
    report = scratch / "junit.xml"
    try:
        python = interpreter_of(context)
        command, additions = _command(context, report, python)
        environment = {**environment_of_tests(context, scratch, python), **additions}
        argv = context.sandbox(command, scratch)
        ran = run_command(
            argv, context.workspace.root, environment, context.deadline_seconds, stopping=context.stopping
        )
    except (UsageError, ValueError) as error:
        return _record(context, _result(_could_not_run(str(error)), TestCounts(), None, _pytest_cmd(context)))
    counts, broken = _counts(report, context)
    verdict = judge(ran, counts, broken)
    return _record(context, _result(verdict, counts or TestCounts(), ran, shlex.join(command)), ran)


def judge(ran: CommandResult, counts: TestCounts | None, broken: str) -> tuple[Status, str]:
    """The status and its reason (``""`` if the status is enough), from the exit code **and** the report.

    ``counts`` is None without a readable report; ``broken`` says why.
    """
    code = ran.returncode
    if ran.timed_out:
        return "timed out", f"no result after {ran.seconds:.0f} s"
    if counts is None:
        return ("no tests", "") if code == NO_TESTS_COLLECTED else _could_not_run(_without_report(ran, broken))
    if counts.failed or counts.errors:
        return "failed", ""
    if code == TESTS_FAILED:
        return "failed", "pytest ended with exit code 1 although no test failed"
    if code == NO_TESTS_COLLECTED or (code == 0 and not counts.passed + counts.skipped):
        return "no tests", ""
    return ("passed", "") if code == 0 else _could_not_run(_without_report(ran, "pytest did not finish"))


def _could_not_run(reason: str) -> tuple[Status, str]:
    return "could not run", reason


def _without_report(ran: CommandResult, broken: str) -> str:
    last_line = (ran.output.strip().splitlines() or ["no output"])[-1]
    return f"{broken} (exit code {ran.returncode}): {last_line[:300]}"


def _pytest_cmd(context: CheckContext) -> str:
    return str(context.options.get("pytest_cmd") or "")


def _command(context: CheckContext, report: Path, python: Interpreter) -> tuple[list[str], dict[str, str]]:
    """The tests' command line, extended to write ``report``, and additions to its environment.

    Raises ValueError for a malformed ``pytest_cmd``.
    """
    option = f"--junitxml={report}"
    ids = ("-o", "junit_family=xunit1")  # which names the file of each test
    given = shlex.split(_pytest_cmd(context))
    if not given:
        return [str(python.path), "-m", "pytest", *cache_in(report.parent), *ids, option], {}
    if any(PurePath(word).name in PYTEST for word in given):
        return [*given, *ids, option], {}
    # A command that runs pytest indirectly, such as `make test`, would not know our option.
    inherited = context.environment.get("PYTEST_ADDOPTS", "")
    return given, {"PYTEST_ADDOPTS": f"{inherited} {shlex.join([*ids, option])}".strip()}


def _counts(report: Path, context: CheckContext) -> tuple[TestCounts | None, str]:
    """Read the report and keep a copy; if it cannot be read, return the reason."""
    try:
        content = read_report(report)
        (context.folder / "junit.xml").write_text(context.redact(content.decode("utf-8", "replace")), encoding="utf-8")
        return parse_report(content), ""
    except ValueError as error:
        return None, str(error)


def _result(verdict: tuple[Status, str], counts: TestCounts, ran: CommandResult | None, command: str) -> PytestResult:
    return PytestResult(
        status=verdict[0],
        reason=verdict[1],
        exit_code=ran.returncode if ran else None,
        **asdict(counts),
        seconds=ran.seconds if ran else 0.0,
        output_tail=ran.output[-MAX_TAIL_CHARACTERS:] if ran else "",
        command=command,
    )


def _record(context: CheckContext, result: PytestResult, ran: CommandResult | None = None) -> PytestResult:
    code = "" if ran is None or ran.returncode is None else str(ran.returncode)
    context.write_artifact("pytest_output.txt", ran.output if ran else "")
    context.write_artifact("pytest_rc.txt", f"{code}\n")
    return result
