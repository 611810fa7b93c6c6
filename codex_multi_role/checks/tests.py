"""The check ``tests``: run pytest on the workspace; judge by its exit code and its JUnit report."""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, declare_check
from codex_multi_role.checks.environments import PLUGINS
from codex_multi_role.checks.interpreter import NO_TESTS_COLLECTED, PYTEST, TESTS_FAILED, Interpreter, starts_own_pytest
from codex_multi_role.checks.junit_report import CountedTests, TestCounts, parse_report, read_report
from codex_multi_role.checks.process_of_tests import cache_in, environment_of_tests, interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.checks.session_report import FILE, PLUGIN, VARIABLE, SessionReport
from codex_multi_role.checks.test_changes import GONE
from codex_multi_role.errors import StorageError, UsageError, denied_in_words
from codex_multi_role.workspace import CommandResult, run_command
from codex_multi_role.workspace.commands import no_sandbox

MAX_TAIL_CHARACTERS = 4_000
SHOWN_TESTS = 3
"""How many tests a reason names."""


Status = Literal["passed", "failed", "no tests", "timed out", "could not run"]


class ComparedTests(CountedTests):
    """How the tests compare with those before the first turn: `PytestResult`."""

    new_failures: int = 0
    new_failures_tests: list[str] = Field(default_factory=list)
    still_failing: int = 0
    still_failing_tests: list[str] = Field(default_factory=list)
    fixed: int = 0
    fixed_tests: list[str] = Field(default_factory=list)
    removed: int = 0
    removed_tests: list[str] = Field(default_factory=list)
    moved: int = 0
    moved_tests: list[str] = Field(default_factory=list)
    dropped: int = 0
    dropped_tests: list[str] = Field(default_factory=list)
    flaky: int = 0
    flaky_tests: list[str] = Field(default_factory=list)
    without_baseline: str = ""
    not_seen: str = ""


class PytestResult(ComparedTests):
    """``verdict``: ``passed`` if no failure is new and no test is gone; ``status`` is pytest's own.

    New is what fails now and did not before the first turn, and what passed then and is skipped now. It is tried once
    more: what was green on the same files is ``flaky``. ``removed``: what passed before and is gone, unless it is
    ``moved``; ``dropped``: what failed before and no longer runs. All are numbers; the ids are in the fields with
    ``_tests``. ``lacks``: the modules that test modules could not import. ``forbidden``: to
    how many tests, which failed by it, the sandbox denied what. ``without_baseline``: why every failure
    counts as new. ``not_seen``: what this run of the tests says nothing about.
    """

    bad = ("failed", GONE, "timed out")

    status: Status
    command: str
    verdict: Status | Literal["gone", ""] = ""
    lacks: dict[str, str] = Field(default_factory=dict)
    forbidden: dict[str, int] = Field(default_factory=dict)
    forbidden_tests: list[str] = Field(default_factory=list)

    @classmethod
    def why_bad(cls, result: Mapping[str, Any]) -> str:
        """A new failure, a test that is gone, or its time limit."""
        verdict = str(result.get("verdict") or result["status"])
        if verdict not in cls.bad:
            return ""
        lacks: Mapping[str, str] = result.get("lacks") or {}
        new = [f"{test} (lacks {lacks[test]})" if test in lacks else test for test in _tests(result, "new_failures")]
        why = [f"new failures: {_first(new)}"] if new else [result["reason"]] if result.get("reason") else []
        if gone := _tests(result, "removed"):
            why.append(f"{'1 test is' if len(gone) == 1 else f'{len(gone)} tests are'} gone: {_first(gone)}")
        if unknown := result.get("without_baseline"):
            why.append(f"every failure counted as new: {unknown}" if new else f"compared with nothing ({unknown})")
        why += filter(None, [denied_in_words(result.get("forbidden") or {})])
        return f"{verdict}: {'; '.join(map(str, why))}" if why else verdict


def _tests(result: Mapping[str, Any], kind: str) -> list[str]:
    return [str(test) for test in result.get(f"{kind}_tests") or ()]


def _first(tests: list[str]) -> str:
    more = f" and {len(tests) - SHOWN_TESTS} more" if len(tests) > SHOWN_TESTS else ""
    return f"{', '.join(tests[:SHOWN_TESTS])}{more}"


def _twice(options: Mapping[str, object], deadline_seconds: float) -> float:
    """New failures, and tests that are gone, are looked at again: once, or twice in the same time."""
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
        environment |= _plugin_variables(environment, scratch) if PLUGIN in command else {}
        argv = context.sandbox(command, scratch)
        ran = run_command(
            argv, context.workspace.root, environment, context.deadline_seconds, stopping=context.stopping
        )
    except (UsageError, ValueError) as error:
        return _record(context, _result(_could_not_run(str(error)), TestCounts(), None, _pytest_cmd(context)))
    counts, broken = _counts(report, context)
    context.write_artifact(FILE, _outcomes(scratch / FILE))
    seen = SessionReport.read(scratch, ran.returncode)
    counts = counts and seen.counted(counts)
    result = _result(judge(ran, counts, broken), counts or TestCounts(), ran, shlex.join(command))
    if context.sandbox is not no_sandbox:
        found = {"forbidden": dict(Counter(seen.refused.values())), "forbidden_tests": sorted(seen.refused)}
        result = result.model_copy(update=found)
    return _record(context, result, ran)


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
    if code == NO_TESTS_COLLECTED or (code == 0 and not (counts.passed + counts.skipped or counts.other_counts)):
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
    # The family names the file of each test. A module that cannot be imported must not hide the others.
    ids = ("-o", "junit_family=xunit1", "--continue-on-collection-errors")
    given = shlex.split(_pytest_cmd(context))
    plugin = ("-p", PLUGIN)
    if not given:
        return [str(python.path), "-m", "pytest", *cache_in(report.parent), *plugin, *ids, option], {}
    if any(PurePath(word).name in PYTEST for word in given):
        return [
            *given,
            *(plugin if starts_own_pytest(shlex.join([PurePath(given[0]).name, *given[1:]])) else ()),
            *ids,
            option,
        ], {}
    # A command that runs pytest indirectly, such as `make test`, would not know our option.
    inherited = context.environment.get("PYTEST_ADDOPTS", "")
    return given, {"PYTEST_ADDOPTS": f"{inherited} {shlex.join([*ids, option])}".strip()}


def _plugin_variables(environment: Mapping[str, str], scratch: Path) -> dict[str, str]:
    folders = ":".join(filter(None, [str(PLUGINS), environment.get("PYTHONPATH")]))
    return {"PYTHONPATH": folders, VARIABLE: str(scratch / FILE)}


def _outcomes(file: Path) -> str:
    """What our plugin wrote; empty if it did not."""
    with contextlib.suppress(ValueError):
        return read_report(file).decode("utf-8", "replace")
    return ""


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
