"""The check ``coverage``: run tests in a private copy of the workspace; report the lines and branches they reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, at_most_own, declare_check
from codex_multi_role.checks.junit_report import CountedTests
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.extensions.measuring.coverage_report import Places
from codex_multi_role.extensions.measuring.coverage_run import REPORT_SECONDS, CoverageOutcome, CoverageRun, Status
from codex_multi_role.extensions.measuring.python_targets import Paths, named_path, named_paths, none_python, not_python

MAX_TAIL_CHARACTERS = 4_000


class CoverageOptions(CheckOptions):
    """``target`` is measured by running ``tests``: paths of files or folders, relative to the workspace.

    ``copy``: the copy of the workspace to measure in instead, made by a step with ``isolate``. ``per_test`` also
    reports what each test reaches, fixtures included; all parameters of a test are one.
    """

    target: str = Field(min_length=1, description="a Python file or a folder of the workspace")
    tests: Paths = Field(default=["tests"], description="a Python file or folder of the workspace, or a list of them")
    per_test: bool = Field(default=False, description="true to record what each test covers")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")
    copy_: str = Field(default="", alias="copy", description="the copy from a result of a step with isolate")


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    reports = 2 if options.get("per_test") else 1
    return at_most_own(options, deadline_seconds) + reports * REPORT_SECONDS


class CoverageResult(CountedTests):
    """``crashed`` is true unless every test has an outcome.

    ``coverage`` is the percentage of lines and branches, null if nothing was measured; ``uncovered`` lists the others.
    ``left_behind``: by test, what it leaves running or open.
    ``reached``: with ``per_test`` what each test reaches, for at most `MAX_TESTS` tests.
    """

    bad = ("failed", "syntax error", "crashed", "timed out")

    status: Status
    crashed: bool
    coverage: float | None
    uncovered: list[Places]
    left_behind: dict[str, str] = Field(default={})
    reached: dict[str, list[Places]] = Field(default={})


@declare_check(options=CoverageOptions, result=CoverageResult, max_seconds=_longest, uses_python=True)
def measure_coverage(context: CheckContext) -> CoverageResult:
    """Parse the tests, run them under coverage.py with branches, and read what they reached of the target.

    Options: `CoverageOptions`; ``timeout_seconds`` cannot exceed the context's deadline. Nothing is written into the
    workspace: every measurement has its own copy. Leaves ``pytest_output.txt``, ``junit.xml``, ``coverage.json`` and
    ``result.json``. A test that ends the pytest process has failed, and the others run again without it.

    Raises UsageError for a wrong option, StorageError when an artifact cannot be written, RunInterrupted.
    """
    options = context.read_options(CoverageOptions, "coverage")
    context = context.in_copy(options.copy_)
    return _record(context, coverage_outcome(context, options), options.per_test)


def coverage_outcome(context: CheckContext, options: CoverageOptions) -> CoverageOutcome:
    """What the check measures, before it is shortened to a result. Raises as the check does."""
    target = named_path(context.workspace, "coverage", options, "target")
    tests = named_paths(context.workspace, "coverage", options, "tests")
    if problem := interpreter_of(context).problem or not_python(context.workspace.root, target):
        return CoverageOutcome("could not run", problem)
    if problem := none_python(context.workspace.root, tests):
        return CoverageOutcome("syntax error", problem)
    with scratch_folder(context.workspace) as scratch:
        run = CoverageRun(context, target, tests, scratch, per_test=options.per_test)
        return run.outcome(at_most_own(context.options, context.deadline_seconds))


def _record(context: CheckContext, outcome: CoverageOutcome, per_test: bool = False) -> CoverageResult:
    ran, measured = outcome.ran, outcome.measured
    context.write_artifact("pytest_output.txt", ran.output if ran else "")
    result = CoverageResult(
        status=outcome.status,
        reason=outcome.reason,
        crashed=outcome.crashed,
        exit_code=ran.returncode if ran else None,
        **asdict(outcome.counts),
        coverage=measured.percent,
        uncovered=list(measured.uncovered),
        seconds=ran.seconds if ran else 0.0,
        output_tail=ran.output[-MAX_TAIL_CHARACTERS:] if ran else "",
        left_behind=dict(outcome.left_behind),
    )
    reached = {test: each.places for test, each in outcome.reached.items()}
    return result.model_copy(update={"reached": reached}) if per_test else result
