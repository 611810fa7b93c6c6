"""A run as JUnit XML: one suite with the run itself, which is red where the run is, and one with its latest tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codex_multi_role.ci.ended import EndedRun
from codex_multi_role.ci.latest_tests import ERROR, FAILED, SKIPPED, Case, LatestTests
from codex_multi_role.presentation.recorded import read_turns
from codex_multi_role.presentation.wording import PROGRAM, duration, verdict

if TYPE_CHECKING:
    from junitparser import TestCase
    from junitparser.junitparser import FinalResult

GOAL_NOT_REACHED = 1
"""The exit code of a run that came to its end; after any other than 0 nobody knows whether it would have."""
MOST_TURNS = 2_000
LONGEST_MESSAGE = 1_000


def junit_report(run: EndedRun, tests: LatestTests | None) -> bytes:
    """The report. The run's case is a failure where the goal was not reached, an error where the run did not get there.

    Cases of the run's tests keep their names, so that a CI system tells one that is new from one that is not.
    """
    return _document({PROGRAM: [_run_case(run)], **({"tests": list(_test_cases(run, tests))} if tests else {})})


def junit_suite(name: str, cases: Iterable[Case]) -> bytes:
    """A report of something else than a run: ``cases`` with texts that are harmless already."""
    return _document({name: list(map(_reported, cases))})


def _document(suites: Mapping[str, list[TestCase]]) -> bytes:
    """Called as its first suite."""
    from junitparser import JUnitXml, TestSuite

    document = JUnitXml(next(iter(suites)))
    for name, cases in suites.items():
        suite = TestSuite(name)
        suite.add_testcases(cases)
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(document.tostring())  # type: ignore[no-untyped-call]


def _run_case(run: EndedRun) -> TestCase:
    from junitparser import TestCase

    flow = run.line(run.progress.flow) or "run"
    case = TestCase(f"flow {flow}" if run.progress.flow else flow, PROGRAM, _seconds(run.totals.get("seconds", 0.0)))
    if run.exit_code != 0:
        case.result = [_why(run)]
    case.system_out = "\n".join(_told(run))
    return case


def _why(run: EndedRun) -> FinalResult:
    from junitparser import Error, Failure

    kind = Failure if run.exit_code == GOAL_NOT_REACHED else Error
    result = kind(run.headline, run.meaning)
    result.text = "\n".join([run.headline, run.meaning, *run.next_steps()])
    return result


def _told(run: EndedRun) -> Iterator[str]:
    """What stands beside the case: the run, and how each of its turns ended."""
    if run.folder is None:
        return
    yield f"run {run.name}: {run.headline} ({run.meaning})"
    yield f"goal: {run.line(run.progress.goal, 500)}"
    yield f"folder: {run.folder.path}"
    if run.progress.tests is not None:
        yield f"tests: {verdict(run.progress.tests)}"
    turns = read_turns(run.folder)
    if len(turns) > MOST_TURNS:
        yield f"the last {MOST_TURNS} of {len(turns)} turns:"
    for turn in turns[-MOST_TURNS:]:
        said = run.line(turn["summary"] or turn.get("reason", ""))
        seconds = duration(float(turn.get("seconds") or 0))
        yield f"{turn['role']} turn {turn['turn']}: {turn.get('status', 'unknown')} in {seconds}: {said}"
    yield from (f"warning: {run.line(warning, 500)}" for warning in run.progress.warnings)


def _test_cases(run: EndedRun, tests: LatestTests) -> Iterator[TestCase]:
    for case in tests.cases:
        yield _test_case(run, case)
    if tests.is_red and not tests.red:
        yield _without_culprit(run, tests)


def _test_case(run: EndedRun, case: Case) -> TestCase:
    name, classname = run.line(case.name, LONGEST_MESSAGE), run.line(case.classname, LONGEST_MESSAGE)
    message, text = run.line(case.message, LONGEST_MESSAGE), run.text(case.text)
    return _reported(replace(case, name=name, classname=classname, message=message, text=text))


def _without_culprit(run: EndedRun, tests: LatestTests) -> TestCase:
    """The tests are red and no single one is: they timed out, could not be run, or pytest itself failed."""
    told, seconds = tests.result, float(tests.result.get("seconds") or 0)
    message, text = f"{told.get('status')}: {told.get('reason')}", str(told.get("output_tail", ""))
    return _test_case(run, Case(PROGRAM, f"tests {tests.number:03d}", ERROR, seconds, message, text))


def _reported(case: Case) -> TestCase:
    from junitparser import Error, Failure, Skipped, TestCase

    told = TestCase(case.name, case.classname, _seconds(case.seconds))
    kind = {FAILED: Failure, ERROR: Error, SKIPPED: Skipped}.get(case.outcome)
    if kind is not None:
        result = kind(case.message, case.outcome)
        result.text = case.text
        told.result = [result]
    return told


def _seconds(seconds: float) -> float:
    return round(seconds, 3) if math.isfinite(seconds) else 0.0
