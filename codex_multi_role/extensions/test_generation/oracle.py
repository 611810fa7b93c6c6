"""The check ``test_items``: run each item of a test plan as a test, and say which do not hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check
from codex_multi_role.checks.junit_report import read_report
from codex_multi_role.checks.process_of_tests import interpreter_of
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.extensions.measuring.suite import Suite
from codex_multi_role.extensions.test_generation.plan_items import FAILS, HOLDS, UNKNOWN, is_suspected
from codex_multi_role.extensions.test_generation.warm_suite import FOLDER
from codex_multi_role.reading.json_types import Json

FILE_VARIABLE, TARGET_VARIABLE = "CODEX_MULTI_ROLE_ITEMS", "CODEX_MULTI_ROLE_ITEMS_TARGET"
MODULE = "test_codex_multi_role_items.py"
ITEM_SECONDS = 20.0
"""An item may take ten seconds, twice if it fails."""
START_SECONDS = 30.0
FOREIGN, NAMES = ("ImportError", "OSError"), ("NameError", "AttributeError")
"""Exceptions that a sandbox causes, or a missing package; and, if the code under test did not raise them, an item."""


class TestItemsOptions(CheckOptions):
    """``items`` of a plan are run beside ``tests``, a file that need not exist, and are about ``target``."""

    __test__ = False

    target: str = Field(min_length=1, description="a Python file of the workspace")
    tests: str = Field(min_length=1, description="a file of the workspace")
    items: list[Json] = Field(description="items of a plan")


class TestItemsResult(CheckResult):
    """``verdicts``: ``{verdict, got, reason}`` by id. ``doubted``: the items that do not hold and may be a bug."""

    __test__ = False

    bad = ()

    status: Literal["judged"]
    verdicts: dict[str, Json]
    doubted: list[Json]


def _longest(options: Mapping[str, object], deadline_seconds: float) -> float:
    items = options.get("items")
    return START_SECONDS + ITEM_SECONDS * (len(items) if isinstance(items, list) else 1)


@declare_check(options=TestItemsOptions, result=TestItemsResult, max_seconds=_longest, uses_python=True)
def judge_items(context: CheckContext) -> TestItemsResult:
    """Run the items in a private copy of the workspace and in the sandbox, each in a process of its own.

    Raises UsageError, StorageError, RunInterrupted.
    """
    options = context.read_options(TestItemsOptions, "test_items")
    problem = interpreter_of(context).problem
    told, output = ({}, problem) if problem or not options.items else _run(context, options)
    verdicts, start = dict[str, Json](), 1
    for each in options.items:
        verdicts[each["id"]] = _verdict(each, told.get(_name(each)), output, start)
        start += len(each["test"].splitlines()) + 2
    doubted = [*filter(is_suspected, ({**each, **verdicts[each["id"]]} for each in options.items))]
    return TestItemsResult(status="judged", verdicts=verdicts, doubted=doubted)


def _name(item: Mapping[str, Any]) -> str:
    return f"test_{item['id'].lower()}"


def _run(context: CheckContext, options: TestItemsOptions) -> tuple[dict[str, Json], str]:
    """What the plugin tells, by test, and pytest's output if it tells nothing."""
    place = str(PurePosixPath(options.tests).with_name(MODULE))
    with scratch_folder(context.workspace) as scratch:
        module = "\n\n".join(f"def {_name(each)}({each['test'].partition('(')[2]}" for each in options.items)
        suite = Suite(context, [place], scratch, options.target, {place: module})
        with suite.prepared(0.0) as copy:
            report = copy.folder / "items.jsonl"
            variables = {
                "PYTHONPATH": f"{FOLDER}:{copy.environment['PYTHONPATH']}",
                FILE_VARIABLE: str(report),
                TARGET_VARIABLE: str(copy.root / options.target),
            }
            arguments = ["-p", "codex_multi_role_items", "-o", "python_functions=test_*"]
            ran = suite.run_copy(copy, arguments, _longest(context.options, 0.0), variables)
            context.write_artifact("pytest_output.txt", ran.output)
            return _read(report), last_cause(ran.output) or f"pytest ended with exit code {ran.returncode}"


def last_cause(output: str) -> str:
    """The last error line of what pytest printed, otherwise the last line."""
    lines = output.strip().splitlines() or [""]
    return ([line.strip() for line in lines if line.startswith("E ")] or lines)[-1]


def _read(report: Path) -> dict[str, Json]:
    """What the items' processes left, who may have written anything there."""
    try:
        told = [json.loads(line) for line in read_report(report).decode("utf-8", "replace").splitlines()]
        return {str(each["name"]): each for each in told}
    except (ValueError, LookupError, TypeError):
        return {}


def _verdict(item: Json, told: Json | None, output: str, start: int) -> Json:
    """What the test's end says of the item whose first line is the module's ``start``."""
    if not told or (told.get("error") and not told.get("line")):
        return _unknown(str(told["error"] if told else f"its test has no result: {output}"))
    if not told["line"]:
        return {"verdict": HOLDS, "got": "", "reason": ""}
    lines = [line.strip() for line in item["test"].splitlines()]
    call = max(number for number, line in enumerate(lines) if line.startswith("result = "))
    place, error, kinds = int(told["line"]) - start, str(told["error"]), told["kind"]
    is_check = place > call and "AssertionError" in kinds
    if place < call - lines[call - 1].startswith("with pytest.raises(") or (place > call and not is_check):
        return _unknown(f"{lines[place] if place < len(lines) else item['call']}: {error}")
    if told["is_awaitable"]:
        return _unknown("the call returns an awaitable: write await before it")
    if not told["found"]:
        return _unknown("the target was not imported from the copy under test")
    is_pytests = "raises" in item["expect"] and kinds[0] in ("Failed", "AssertionError")  # not raised, or another text
    is_raised = not is_check and not is_pytests
    if is_raised and _is_unusable(told):
        return _unknown(error)
    return {"verdict": FAILS, "got": f"raised {error}" if is_raised else told["got"] or error, "reason": ""}


def _is_unusable(told: Mapping[str, Any]) -> bool:
    """Whether the exception says more of the item or the sandbox than of the code: a wrong name, a missing file."""
    kinds, is_own = told["kind"], not told["is_from_target"]
    is_signature = kinds[0] == "TypeError" and "argument" in told["error"]
    return bool({*FOREIGN} & {*kinds}) or (is_own and (is_signature or bool({*NAMES} & {*kinds})))


def _unknown(reason: str) -> Json:
    return {"verdict": UNKNOWN, "got": "", "reason": reason}
