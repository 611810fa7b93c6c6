"""The check ``prune_tests``: remove failing and flaky tests, and measure the others."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, ResultPart, at_most_own, declare_check
from codex_multi_role.checks.junit_report import FailedTest, junit_name
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.extensions.measuring.coverage import CoverageResult, measure_coverage
from codex_multi_role.extensions.measuring.python_targets import none_python
from codex_multi_role.extensions.measuring.suite import Suite, repeat
from codex_multi_role.extensions.test_generation.existing_tests import together
from codex_multi_role.extensions.test_generation.expectations import contrary, tests_asserting, untested
from codex_multi_role.extensions.test_generation.plan_items import UNKNOWN, is_suspected
from codex_multi_role.extensions.test_generation.test_files import (
    TestFile,
    Texts,
    names_in,
    put_all,
    remove,
    shown,
    texts_of,
    without_tests,
)
from codex_multi_role.extensions.test_generation.tests_source import functions_in, tests_without_assertion
from codex_multi_role.reading.json_types import Json

GONE: Json = {"passed": 0, "coverage": None, "uncovered": []}
NOTHING: Json = {
    **{"status": "no tests", "reason": "", "crashed": True, "exit_code": None, "failed": 0, "errors": 0, "skipped": 0},
    **{**GONE, "failures": [], "seconds": 0.0, "output_tail": ""},
}
MOST_ROUNDS = 5
"""A report names at most twenty failures, and a test may fail only after another is removed."""
MOST_RUNS = 10


class PruneTestsOptions(CheckOptions):
    """``files`` are the tests of the file ``target``; ``plan`` says what its items expect.

    ``changed``: assertions of failing tests that a developer changed and that were restored, as ``{test, assertion}``.
    ``existing``: what the project's own tests leave uncovered of the target.

    The tests run ``runs`` times to find flaky ones; with 1, flaky ones are not searched for.
    """

    target: str = Field(min_length=1, description="a Python file of the workspace")
    files: list[TestFile] = Field(description="a list of {path, content}")
    plan: list[Json] = Field(default=[], description="the plan's items")
    existing: Json = Field(default={}, description='"{{ steps.<existing_tests>.files[…] }}"')
    changed: list[Json] = Field(default=[], description="a list of {test, assertion}")
    runs: int = Field(default=3, ge=1, le=MOST_RUNS, description="a number from 1 to 10")
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="a number of seconds")


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    runs = options.get("runs", MOST_RUNS)
    repeated = 2 * runs * at_most_own(options, deadline_seconds) if isinstance(runs, int) else 0.0
    return MOST_ROUNDS * measure_coverage.max_seconds(options, deadline_seconds) + repeated


class FlakyTests(ResultPart):
    """``tests``: the outcomes of each test that differ, run by run. ``reason``: why they were not all run."""

    runs: int
    reason: str
    tests: dict[str, list[str]]


class PruneTestsResult(CoverageResult):
    """The coverage by the tests that are left, and what was ``pruned``.

    ``files``: the paths of those that are left. ``suspected_bugs``: plan items whose test failed although it expects
    what the plan says, or whose assertion was ``changed``, with its ``tests``. A test of no item is one of its own.
    """

    files: list[str]
    pruned: list[FailedTest]
    flaky: FlakyTests
    suspected_bugs: list[Json]
    untested: list[str]
    unasserting: list[str]


@declare_check(options=PruneTestsOptions, result=PruneTestsResult, max_seconds=_longest, uses_python=True)
def prune_tests(context: CheckContext) -> PruneTestsResult:
    """Write ``files``, remove flaky tests and then failing ones, and measure again, until none fails.

    Files that crash or have no test left are removed, but kept as the artifact ``removed.py.txt``. Raises the errors of
    the check ``coverage``.
    """
    options = context.read_options(PruneTestsOptions, "prune_tests")
    given = left = texts_of(options.files)
    flaky = _flaky(context, options, given)
    left, pruned = without_tests(left, flaky.tests), list[Json]()
    for number in range(1, MOST_ROUNDS + 1):
        put_all(context, left)
        remove(context, given.keys() - left.keys())
        result = _measure(context, options, list(left), number) if left else NOTHING
        gone = [*result["failures"], *leaks(result)]
        gone += _contrary(without_tests(left, [each["test"] for each in gone]), options.plan)
        smaller = left if result["crashed"] else without_tests(left, [each["test"] for each in gone])
        if smaller == left or number == MOST_ROUNDS:  # nothing fails, or no failure is a function of these files
            break
        pruned += gone
        left = smaller
        if number == 1 and flaky.reason and flaky.runs:  # the test that prevented the repetition may be gone
            flaky = _flaky(context, options, left)
            left = without_tests(left, flaky.tests)
    if result["crashed"] and given:
        context.write_artifact("removed.py.txt", shown(left or given))
        left, result = {}, {**result, **GONE}
        remove(context, given)
    bugs = _bugs(given, options, pruned)
    reported = {bug["id"] for bug in bugs}
    fields = {
        "files": list(left),
        "pruned": pruned,
        "flaky": flaky,
        "suspected_bugs": bugs,
        "untested": [each for each in untested(left.values(), options.plan) if each not in reported],
        "unasserting": [name for text in left.values() for name in tests_without_assertion(text)],
    }
    return PruneTestsResult.model_validate({**together(options.existing, options.target, result), **fields})


def leaks(measured: Mapping[str, Any]) -> list[Json]:
    """The tests of a result of coverage that leave something behind, as failures."""
    left = measured.get("left_behind", {})
    return [{"test": test, "message": f"it leaves {what} behind, which it must end"} for test, what in left.items()]


def _contrary(texts: Texts, plan: Sequence[Json]) -> list[Json]:
    """The tests that take a suspected bug for right, as failures."""
    return [
        {"test": junit_name(f"{path}::{name}"), "message": f"it asserts the contrary of {id_}"}
        for path, text in texts.items()
        for name, id_ in contrary(text, plan).items()
    ]


def _flaky(context: CheckContext, options: PruneTestsOptions, texts: Texts) -> FlakyTests:
    put_all(context, texts)
    root = context.workspace.root
    if not texts or options.runs == 1 or interpreter_of(context).problem or none_python(root, list(texts)):
        reason = "not looked for" if options.runs == 1 else "no test can run"
        return FlakyTests(runs=0, reason=reason, tests={})
    seconds = at_most_own({"timeout_seconds": options.timeout_seconds}, context.deadline_seconds)
    with scratch_folder(context.workspace) as scratch:
        suite = Suite(context, list(texts), scratch, options.target)
        repeated = repeat(suite, options.runs, time.monotonic() + options.runs * seconds)
    return FlakyTests(runs=len(repeated.outcomes), reason=repeated.problem, tests=dict(repeated.flaky))


def _measure(context: CheckContext, options: PruneTestsOptions, tests: Sequence[str], number: int) -> Json:
    given = options.model_dump(include={"target", "timeout_seconds"}, exclude_none=True)
    folder = context.folder / f"{number:03d}"
    return measure_coverage(replace(context, folder=folder, options={**given, "tests": list(tests)}))


def _is_import_error(message: str, target: str) -> bool:
    """Whether it failed by a missing module, or by an import in another file than the target: no bug in the code."""
    raised = re.findall(r"^(\S+?):\d+: (ModuleNotFoundError|ImportError)$", message, re.MULTILINE)
    return bool(raised) and (raised[-1][1] == "ModuleNotFoundError" or raised[-1][0] != target)


def _bugs(texts: Texts, options: PruneTestsOptions, pruned: Sequence[Json]) -> list[Json]:
    """The plan items that do not hold, or what developers' failing tests, here as ``test``, expect as the plan does."""
    written = {each.name: ast.unparse(each.node) for text in texts.values() for each in functions_in(text)}
    failed = [each["test"] for each in pruned if not _is_import_error(each["message"], options.target)]
    changed = {str(each["test"]): each["assertion"] for each in options.changed}
    found, left = [], {name for path in texts for name in names_in(path, failed) if name in changed}
    for item in options.plan:
        stating = tests_asserting(texts, failed, item)
        own = [name for path in texts for name in names_in(path, stating)]
        if is_suspected(item):
            found.append({**item, "tests": own})
        elif own and item["verdict"] == UNKNOWN and not item["withdrawn"]:
            found.append({**item, "tests": own, "test": written[own[0]]})
        left -= {*own}
    about = dict.fromkeys(("why", "source", "quote", "call", "got", "withdrawn"), "")
    restored = (
        {"id": name, "expected": changed[name], "tests": [name], "test": written[name]} for name in sorted(left)
    )
    return [*found, *({**about, **each} for each in restored)]
