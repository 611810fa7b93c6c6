"""The check ``prune_tests``: take out the tests that fail, and measure what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field, JsonValue

from codex_multi_role.checks.artifacts import write_artifact, write_result
from codex_multi_role.checks.base import CheckContext, lasts, longest_seconds
from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.judge_tests import suspected_bugs
from codex_multi_role.checks.options import CheckOptions, read_options
from codex_multi_role.checks.test_files import (
    TestFile,
    Texts,
    names_in,
    put_all,
    remove,
    shown,
    texts_of,
    without_tests,
)

Json = dict[str, Any]
NOTHING: Json = {"status": "no tests", "crashed": True, "passed": 0, "coverage": 0.0, "failures": []}
MOST_ROUNDS = 5
"""A report names twenty failures at most, and a test may fail only once another is gone."""


class PruneTestsOptions(CheckOptions):
    """``files`` are the tests for the file ``target``; ``plan`` says what its items expect."""

    target: str = Field(min_length=1, description="a Python file of the workspace")
    files: list[TestFile] = Field(description="a list of {path, content}")
    plan: list[dict[str, JsonValue]] = Field(default=[], description="the plan's items")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    return MOST_ROUNDS * longest_seconds(measure_coverage, options, deadline_seconds)


@lasts(_longest)
def prune_tests(context: CheckContext) -> dict[str, object]:
    """What the check coverage says of the tests that pass, and besides ``{files: [path], pruned: [{test, message}],
    suspected_bugs}``.

    ``files`` are written; of each the tests that fail are taken out, and what is left is measured again, until none
    fails. Files that crash, or in which no test is left, are removed; they stay among the artifacts
    as ``removed.py``. ``suspected_bugs``: plan items whose test failed although it expects what the plan says. Raises
    as the check coverage.
    """
    options = read_options(PruneTestsOptions, context, "prune_tests")
    given = left = texts_of(options.files)
    put_all(context, given)
    pruned: list[Json] = []
    result = NOTHING
    for number in range(1, MOST_ROUNDS + 1):
        put_all(context, left)
        remove(context, given.keys() - left.keys())
        result = _measure(context, options, list(left), number) if left else NOTHING
        smaller = left if result["crashed"] else without_tests(left, [each["test"] for each in result["failures"]])
        if smaller == left:  # nothing fails, or nothing of what fails is a function of these files
            break
        pruned += result["failures"]
        left = smaller
    if result["crashed"] and given:
        write_artifact(context, "removed.py", shown(left or given))
        left = {}
        remove(context, given)
    told = {"files": list(left), "pruned": pruned, "suspected_bugs": _bugs(given, options, pruned)}
    return write_result(context, {**result, **told})


def _measure(context: CheckContext, options: PruneTestsOptions, tests: Sequence[str], number: int) -> Json:
    given: dict[str, object] = {"target": options.target, "tests": list(tests)}
    if options.timeout_seconds is not None:
        given["timeout_seconds"] = options.timeout_seconds
    return measure_coverage(replace(context, folder=context.folder / f"{number:03d}", options=given))


def _bugs(texts: Texts, options: PruneTestsOptions, pruned: Sequence[Json]) -> list[Json]:
    failed = [each["test"] for each in pruned]
    return suspected_bugs({path: (text, names_in(path, failed)) for path, text in texts.items()}, options.plan)
