"""The check ``prune_tests``: take out the tests that fail, and measure what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field, JsonValue

from codex_multi_role.checks.artifacts import write_artifact, write_result
from codex_multi_role.checks.base import CheckContext, lasts, longest_seconds
from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.judge_tests import suspected_bugs
from codex_multi_role.checks.options import CheckOptions, inside, read_options
from codex_multi_role.checks.tests_source import without
from codex_multi_role.checks.text_files import put

Json = dict[str, Any]
NOTHING: Json = {"status": "no tests", "crashed": True, "passed": 0, "coverage": 0.0, "failures": []}
MOST_ROUNDS = 5
"""A report names twenty failures at most, and a test may fail only once another is gone."""


class PruneTestsOptions(CheckOptions):
    """``tests`` is the file of tests for the file ``target``; ``plan`` says what its items expect."""

    target: str = Field(min_length=1, description="a Python file of the workspace")
    tests: str = Field(min_length=1, description="a Python file of the workspace")
    code: str = Field(description="the text of that file")
    plan: list[dict[str, JsonValue]] = Field(default=[], description="the plan's items")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    return MOST_ROUNDS * longest_seconds(measure_coverage, options, deadline_seconds)


@lasts(_longest)
def prune_tests(context: CheckContext) -> dict[str, object]:
    """What the check coverage says of the tests that pass, and besides ``{pruned: [{test, message}], suspected_bugs}``.

    ``code`` is written as the file of tests; those that fail are taken out, and the file is measured again, until none
    fails. A file that crashes, or in which no test is left, is removed; it stays among the artifacts as ``removed.py``.
    ``suspected_bugs``: plan items whose test failed although it expects what the plan says. Raises as the check
    coverage.
    """
    options = read_options(PruneTestsOptions, context, "prune_tests")
    place = inside(context.workspace, options.tests, "check prune_tests: tests")
    code, pruned, result = options.code, [], NOTHING
    for number in range(1, MOST_ROUNDS + 1 if code else 0):
        put(context, options.tests, code)
        result = _measure(context, options, number)
        left = code if result["crashed"] else without(code, names_of(result["failures"], options.tests))
        if left == code:  # nothing fails, or nothing of what fails is a function of this file
            break
        pruned += result["failures"]
        code = left
    if result["crashed"]:
        write_artifact(context, "removed.py", code)
        place.unlink(missing_ok=True)
    bugs = suspected_bugs(options.code, options.plan, names_of(pruned, options.tests))
    return write_result(context, {**result, "pruned": pruned, "suspected_bugs": bugs})


def _measure(context: CheckContext, options: PruneTestsOptions, number: int) -> Json:
    given: dict[str, object] = {"target": options.target, "tests": options.tests}
    if options.timeout_seconds is not None:
        given["timeout_seconds"] = options.timeout_seconds
    return measure_coverage(replace(context, folder=context.folder / f"{number:03d}", options=given))


def names_of(failures: list[Json], tests: str) -> list[str]:
    """``TestShape::test_area``, as in `functions_in`, for pytest's ``tests.test_shapes.TestShape::test_area[1]``."""
    module = tests.removesuffix(".py").replace("/", ".")
    names = []
    for failure in failures:
        classes, _, test = failure["test"].rpartition("::")
        within = [part for part in classes.removeprefix(module).split(".") if part]
        names.append("::".join([*within, test.split("[")[0]]))
    return names
