"""The check ``merge_tests``: from several candidates' tests, the fewest that lose neither coverage nor a kill."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice
from itertools import count as count_from
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, ResultPart, at_most_own, declare_check
from codex_multi_role.checks.scratch_folders import scratch_folder
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.measuring.coverage_run import REPORT_SECONDS
from codex_multi_role.extensions.measuring.python_targets import named_path, not_python, syntax_problem
from codex_multi_role.extensions.measuring.suite import END_SECONDS, own_and
from codex_multi_role.extensions.test_generation.expectations import asserting, tests_asserting
from codex_multi_role.extensions.test_generation.measured_tests import Bench, SuiteMeasurement, smallest_cover, units
from codex_multi_role.extensions.test_generation.mutants import HOW_TO_INSTALL, MutantOptions, is_installed
from codex_multi_role.extensions.test_generation.plan_items import UNKNOWN
from codex_multi_role.extensions.test_generation.test_files import TestFile, Texts, without_tests
from codex_multi_role.reading.json_types import Json
from codex_multi_role.workspace import PathRefused, write_inside

WRITTEN = "written.json"
"""The artifact that lists the files to write, saved before any is written."""
STOPPED = ("could not run", "timed out")


class CandidateTests(CheckOptions):
    code: str


class MergeTestsOptions(MutantOptions):
    """``target`` is tested. The merged tests go to ``tests``, by default to ``tests/test_<target>.py``.

    A second module goes beside it as ``…__2.py``, and so on; a name in use is skipped. ``others`` are modules that run
    beside each candidate's tests, ``plan`` has items that say what is expected. The options of
    mutants are those of the check ``mutation``; ``runs`` is how often the tests run to find flaky ones.
    """

    candidates: list[CandidateTests] = Field(min_length=1, description="a list of {code}")
    others: list[TestFile] = Field(default=[], description="a list of {path, content}")
    plan: list[Json] = Field(default=[], description="the plan's items")
    tests: str = Field(default="", description="a Python file of the workspace")
    runs: int = Field(default=3, ge=1, le=10, description="a number from 1 to 10")


class DroppedTest(ResultPart):
    test: str
    reason: str


class Contribution(ResultPart):
    """``reached`` counts lines and branches, ``killed`` mutants."""

    tests: int
    reached: int
    killed: int


class CandidateContribution(Contribution):
    index: int


class MergeTestsResult(CheckResult):
    """``failing`` tests stay although they fail. ``flaky``, ``candidates`` and ``merged`` are missing without a merge.

    ``survivors`` are mutants as in the check ``mutation``; ``matrix``: the mutants that each test kills.
    """

    bad = ("timed out",)

    status: Literal["merged", "timed out", "could not run"]
    reason: str
    files: list[Json]
    kept: list[str]
    failing: list[str]
    dropped: list[DroppedTest]
    flaky: dict[str, list[str]] = Field(default={})
    candidates: list[CandidateContribution] = Field(default=[])
    merged: Contribution | None = None
    coverage: float | None
    mutants: int
    score_percent: float | None
    ids: list[str]
    survivors: list[Json]
    matrix: dict[str, list[str]]
    seconds: float


@declare_check(
    options=MergeTestsOptions,
    result=MergeTestsResult,
    max_seconds=own_and(4 * REPORT_SECONDS + END_SECONDS),
    uses_python=True,
)
def merge_tests(context: CheckContext) -> MergeTestsResult:
    """Measure all candidates' tests together, keep the fewest that lose nothing, and measure these again.

    Options: `MergeTestsOptions`; ``timeout_seconds`` covers everything and cannot exceed the context's deadline.
    Failing and flaky tests are dropped first, except tests that expect what the plan says of an item when no passing
    test does: the code may be wrong. Of the others, `smallest_cover` selects those to keep by lines, branches and
    killed mutants. Each removed test is cut from its module by its syntax; everything else there stays. If the
    remaining tests reach or kill less than all did, nothing is removed.

    Raises UsageError for a wrong option, StorageError when a file cannot be written, RunInterrupted.
    """
    started = time.monotonic()
    options = context.read_options(MergeTestsOptions, "merge_tests")
    for name in ("target", *(["tests"] if options.tests else [])):
        named_path(context.workspace, "merge_tests", options, name)
    until = started + at_most_own(context.options, context.deadline_seconds)
    merged = _merged(context, options, until)
    seconds = round(time.monotonic() - started, 3)
    return MergeTestsResult.model_validate({**merged, "seconds": seconds})


def _merged(context: CheckContext, options: MergeTestsOptions, until: float) -> dict[str, object]:
    root = context.workspace.root
    if not is_installed():
        return _nothing("could not run", HOW_TO_INSTALL)
    from codex_multi_role.extensions.test_generation.mutated_file import MutatedFile  # here: libcst is an extra

    try:
        if problem := not_python(root, options.target):
            raise ValueError(problem)
        files = _files(context, options)
        file = MutatedFile((root / options.target).read_bytes().decode("utf-8-sig"))
        mutants = file.chosen(options)
    except (ValueError, IsADirectoryError) as error:
        return _nothing("could not run", str(error))
    with scratch_folder(context.workspace) as scratch:
        bench = Bench(context, options.target, mutants, scratch, until, options.concurrency)
        return _chosen(context, options, bench, files)


def _files(context: CheckContext, options: MergeTestsOptions) -> dict[str, str]:
    """The candidates' modules and the others, by path. Raises ValueError for invalid Python."""
    texts = [candidate.code for candidate in options.candidates]
    for number, text in enumerate(texts, 1):
        if problem := syntax_problem(text, f"candidate {number}"):
            raise ValueError(problem)
    texts += [file.content for file in options.others]
    return dict(zip(_paths(context, options, len(texts)), texts, strict=True))


def _chosen(
    context: CheckContext, options: MergeTestsOptions, bench: Bench, files: dict[str, str]
) -> dict[str, object]:
    undisturbed = bench.repeat(files, options.runs)
    if undisturbed.problem:
        return _nothing(STOPPED[undisturbed.timed_out], undisturbed.problem)
    failing = units(undisturbed.bad)
    dropped = dict.fromkeys(undisturbed.bad, "it fails") | dict.fromkeys(undisturbed.flaky, "its outcome changes")
    clean = _without(files, dropped)
    combined = bench.measure(clean)
    if combined.problem:
        return _nothing(STOPPED[combined.timed_out], combined.problem)
    kept, final, reason = _fewest(context, options, bench, clean, combined)
    redundant = {test: "other tests cover and kill the same" for test in combined.reaches if test not in kept}
    planned = _as_planned(files, clean, failing, options.plan)
    removed = {test: why for test, why in {**dropped, **redundant}.items() if not {*units([test])} & {*planned}}
    merged = _placed(context, options, _without(files, removed), {*kept, *planned})
    _write(context, options, merged)
    return {
        "status": "merged",
        "reason": reason,
        "files": [{"path": path, "content": text} for path, text in merged.items()],
        "kept": kept,
        "failing": planned,
        "dropped": [{"test": test, "reason": why} for test, why in removed.items()],
        "flaky": dict(undisturbed.flaky),
        "candidates": [
            {"index": index, **combined.part(_tests_in(path, combined.reached))}
            for index, path in enumerate([*files][: len(options.candidates)])
        ],
        "merged": final.part(final.reached),
        **final.as_json(),
        "survivors": [each.as_json() for each in bench.mutants if each.id in final.matrix.survived],
    }


def _fewest(
    context: CheckContext, options: MergeTestsOptions, bench: Bench, clean: Texts, combined: SuiteMeasurement
) -> tuple[list[str], SuiteMeasurement, str]:
    """The tests to keep, their measurement in their final place, and why they are not fewer."""
    kept = smallest_cover(combined.reaches) or list(combined.reaches)
    stating = (tests_asserting(clean, combined.reaches, item) for item in options.plan)
    kept += dict.fromkeys([own[0] for own in stating if own and not {*own} & {*kept}])
    redundant = [test for test in combined.reaches if test not in kept]
    final = bench.measure(_placed(context, options, _without(clean, redundant), kept))
    if not final.problem and combined.is_kept_by(final):
        return kept, final, ""
    problem = final.problem or "without the other tests, fewer lines are covered or mutants killed"
    return list(combined.reaches), combined, f"nothing more is removed: {problem}"


def _as_planned(files: Texts, clean: Texts, failing: Sequence[str], plan: Sequence[Json]) -> list[str]:
    """The failing tests that expect what the plan says of an item that cannot be evaluated, if no passing test does."""
    unknown = (each for each in plan if each["verdict"] == UNKNOWN)
    wanted = [each for each in unknown if not any(asserting(text, each) for text in clean.values())]
    return list(dict.fromkeys(test for item in wanted for test in tests_asserting(files, failing, item)))


def _placed(context: CheckContext, options: MergeTestsOptions, texts: Texts, wanted: Collection[str]) -> dict[str, str]:
    """The ``texts`` that have ``wanted`` tests, assigned to the first free paths."""
    left = [text for path, text in texts.items() if _tests_in(path, wanted)]
    return dict(zip(_paths(context, options, len(left)), left, strict=True))


def _paths(context: CheckContext, options: MergeTestsOptions, number: int) -> list[str]:
    """The paths for the modules, which never replace somebody else's file."""
    first = PurePosixPath(options.tests or f"tests/test_{PurePosixPath(options.target).name}")
    names = chain([first], (first.with_stem(f"{first.stem}__{count}") for count in count_from(2)))
    own = _own(context, options)
    free = (str(each) for each in names if str(each) in own or not os.path.lexists(context.workspace.root / each))
    return list(islice(free, number))


def _own(context: CheckContext, options: MergeTestsOptions) -> set[str]:
    """The files that the check may replace or remove, including those of an interrupted attempt."""
    given = {options.tests, *(file.path for file in options.others)}
    try:
        return {*given, *json.loads((context.folder / WRITTEN).read_text(encoding="utf-8"))}
    except (OSError, ValueError):
        return given


def _without(files: Mapping[str, str], dropped: Collection[str]) -> dict[str, str]:
    """The modules without the tests in ``dropped``; a module that cannot be collected is dropped as a whole."""
    intact = (path for path in files if all("::" in test for test in _tests_in(path, dropped)))
    return without_tests({path: files[path] for path in intact}, dropped)


def _tests_in(path: str, tests: Iterable[str]) -> list[str]:
    """The ``tests`` of the module at ``path``."""
    return [test for test in tests if PurePosixPath(path).stem in test.partition("::")[0].split(".")]


def _write(context: CheckContext, options: MergeTestsOptions, merged: Mapping[str, str]) -> None:
    """Write the merged modules and remove the other files that they replace."""
    own = {*_own(context, options), *merged} - {""}
    context.write_artifact(WRITTEN, json.dumps(sorted(own)))
    for path in own:
        try:
            if path in merged:
                write_inside(context.workspace, path, merged[path].encode())
            else:
                context.workspace.resolve_writable(path).unlink(missing_ok=True)
        except (PathRefused, OSError) as error:
            raise StorageError(f"{path} cannot be written: {error}") from error


def _nothing(status: str, reason: str) -> dict[str, object]:
    return {
        "status": status,
        "reason": reason,
        "files": [],
        "kept": [],
        "failing": [],
        "dropped": [],
        **SuiteMeasurement().as_json(),
    }
