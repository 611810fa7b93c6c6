"""The check ``flaky``: find tests whose outcome changes when they run again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks.contract import CheckContext, CheckOptions, CheckResult, at_most_own, declare_check
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.extensions.measuring.python_targets import named_path, not_python
from codex_multi_role.extensions.measuring.suite import END_SECONDS, Repeated, Suite, own_and, repeat

Status = Literal["ok", "flaky", "timed out", "could not run"]


class FlakyOptions(CheckOptions):
    """``tests``, a file or a folder of the workspace, run ``runs`` times."""

    tests: str = Field(default="tests", min_length=1, description="a Python file or a folder of the workspace")
    runs: int = Field(default=3, ge=2, le=10, description="a number from 2 to 10")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


class FlakyResult(CheckResult):
    """``flaky``: the outcome of each run, which is ``passed``, ``failed``, ``skipped`` or ``missing``, by test.

    ``failed``: the tests that failed every time.
    """

    status: Status
    reason: str
    runs: int
    tests: int
    flaky: dict[str, list[str]]
    failed: list[str]
    seconds: float

    @classmethod
    def why_bad(cls, result: Mapping[str, Any]) -> str:
        """A flaky test, or one that failed every time."""
        found = {"flaky": list(result["flaky"]), "failed every time": result["failed"]}
        return "; ".join(f"{what}: {', '.join(tests[:3])}" for what, tests in found.items() if tests)


@declare_check(options=FlakyOptions, result=FlakyResult, max_seconds=own_and(END_SECONDS), uses_python=True)
def find_flaky(context: CheckContext) -> FlakyResult:
    """Run the tests several times, each time in a private copy of the workspace, in the sandbox.

    Options: `FlakyOptions`; ``timeout_seconds`` covers all runs and cannot exceed the context's deadline. Raises
    UsageError for a wrong option, StorageError when an artifact cannot be written, RunInterrupted.
    """
    started = time.monotonic()
    options = context.read_options(FlakyOptions, "flaky")
    named_path(context.workspace, "flaky", options, "tests")
    if problem := not_python(context.workspace.root, options.tests):
        return _record(Repeated((), {}, (), problem), started)
    with scratch_folder(context.workspace) as scratch:
        until = started + at_most_own(context.options, context.deadline_seconds)
        return _record(repeat(Suite(context, [options.tests], scratch), options.runs, until), started)


def _record(repeated: Repeated, started: float) -> FlakyResult:
    return FlakyResult(
        status=_status(repeated),
        reason=repeated.problem,
        runs=len(repeated.outcomes),
        tests=len(repeated.last.cases or {}) if repeated.outcomes else 0,
        flaky=dict(repeated.flaky),
        failed=list(repeated.bad),
        seconds=round(time.monotonic() - started, 3),
    )


def _status(repeated: Repeated) -> Status:
    if repeated.timed_out:
        return "timed out"
    if repeated.problem:
        return "could not run"
    return "flaky" if repeated.flaky else "ok"
