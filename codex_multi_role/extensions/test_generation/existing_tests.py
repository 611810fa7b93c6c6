"""The check ``existing_tests``: what the project's own tests leave uncovered of the files that need tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, at_most_own, declare_check
from codex_multi_role.checks.junit_report import read_report
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.extensions.measuring.coverage_report import branch_text, listed_lines
from codex_multi_role.extensions.measuring.coverage_run import NOT_COUNTED, OMITTED, REPORT_SECONDS, CoverageRun
from codex_multi_role.extensions.measuring.suite import own_and
from codex_multi_role.extensions.test_generation.target_facts import has_tests
from codex_multi_role.reading.json_types import Json

MORE = " more"


class ExistingTestsOptions(CheckOptions):
    """The project's tests run as its settings say; ``target`` is measured, a file or folder, and of it ``files``."""

    target: str = Field(min_length=1, description="a Python file or a folder of the workspace")
    files: list[str] = Field(description="the files of the target that need tests")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


class ExistingCoverage(ResultPart):
    """Of one file: ``lines`` and ``branches`` of its ``places`` are not reached. An omitted file has no ``places``."""

    coverage: float
    places: int
    lines: list[int]
    branches: list[str]


class ExistingTestsResult(CheckResult):
    """``files``: what is known of each; empty if nothing was measured, with the ``reason``.

    ``failing``: tests that fail already, ``left_behind``: what tests leave behind, by test. Both are nobody's work.
    """

    bad = ()

    status: Literal["measured", "no tests", "not measured"]
    reason: str
    passed: int
    failing: list[str]
    left_behind: dict[str, str]
    files: dict[str, ExistingCoverage]


@declare_check(
    options=ExistingTestsOptions, result=ExistingTestsResult, max_seconds=own_and(REPORT_SECONDS), uses_python=True
)
def measure_existing(context: CheckContext) -> ExistingTestsResult:
    """Run the project's tests once, in a private copy and in the sandbox. Raises the errors of the check coverage."""
    options = context.read_options(ExistingTestsOptions, "existing_tests")
    nothing = ExistingTestsResult(status="no tests", reason="", passed=0, failing=[], left_behind={}, files={})
    if not options.files or not has_tests(context.workspace.root) or interpreter_of(context).problem:
        return nothing
    with scratch_folder(context.workspace) as scratch:
        run = CoverageRun(context, options.target, ["--continue-on-collection-errors"], scratch)
        outcome = run.outcome(at_most_own(context.options, context.deadline_seconds))
    context.write_artifact("pytest_output.txt", outcome.ran.output if outcome.ran else "")
    is_measured = not outcome.crashed or outcome.reason == NOT_COUNTED  # those that did count are reached all the same
    files = _measured(context, options.files) if is_measured else {}
    if outcome.reason.endswith(OMITTED):
        files = dict.fromkeys(options.files, ExistingCoverage(coverage=0.0, places=0, lines=[], branches=[]))
    return ExistingTestsResult(
        status="no tests" if outcome.status == "no tests" else "measured" if is_measured or files else "not measured",
        reason="" if is_measured else outcome.reason,
        passed=outcome.counts.passed,
        failing=[each["test"] for each in outcome.counts.failures],
        left_behind=dict(outcome.left_behind),
        files=files,
    )


def _measured(context: CheckContext, files: Sequence[str]) -> dict[str, ExistingCoverage]:
    found = json.loads(read_report(context.folder / "coverage.json", "coverage report"))["files"]
    return {
        name: ExistingCoverage(
            coverage=round(float(file["summary"]["percent_covered"]), 2),
            places=file["summary"]["num_statements"] + file["summary"].get("num_branches", 0),
            lines=file["missing_lines"],
            branches=[branch_text(*each) for each in file.get("missing_branches", [])],
        )
        for name in files
        if (file := found.get(name))
    }


def together(existing: Mapping[str, Any], file: str, measured: Json) -> Json:
    """``measured``, the result of a check of coverage for new tests, with what the ``existing`` ones reach as well."""
    places = [each for each in measured.get("uncovered", []) if each["file"] == file]
    is_known = (
        existing
        and measured["coverage"] is not None
        and not any(MORE in each for place in places for each in place.values())
    )
    if not is_known:
        return measured
    lines = {*existing["lines"]} & {number for place in places for number in _numbers(place["lines"])}
    branches = Counter(existing["branches"]) & Counter(
        filter(None, (each for place in places for each in place["branches"].split(", ")))
    )
    missing = len(lines) + branches.total()
    shown = {"file": file, "lines": listed_lines(sorted(lines)), "branches": ", ".join(branches.elements())}
    percent = round(100 * (existing["places"] - missing) / existing["places"], 2) if existing["places"] else 100.0
    return {**measured, "coverage": percent, "uncovered": [shown] if missing else []}


def _numbers(listed: str) -> list[int]:
    ends = (each.partition("-") for each in listed.split(", ") if each)
    return [number for first, _, last in ends for number in range(int(first), int(last or first) + 1)]
