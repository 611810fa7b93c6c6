"""A run as JUnit XML: one suite with the run itself, which fails if the run does, and one with its latest tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from codex_multi_role.extensions.ci.ended_run import ERROR, FAILED, LONGEST_TEXT, SKIPPED, Case, EndedRun, LatestTests
from codex_multi_role.host.spelling import printable
from codex_multi_role.presentation.recorded import read_turns
from codex_multi_role.presentation.wording import duration, verdict
from codex_multi_role.run_folder.folder import PROGRAM

if TYPE_CHECKING:
    from junitparser.junitparser import FinalResult

GOAL_NOT_REACHED = 1
"""The exit code of a run that ended without its goal; other codes except 0 leave open whether it would reach it."""
MOST_TURNS = 2_000
LONGEST_MESSAGE = 1_000


def junit_report(run: EndedRun) -> bytes:
    """Create the report. The run's case is a failure if the goal was not reached, an error if the run did not end.

    Cases of the run's tests keep their names, so that a CI system can tell new ones from known ones.
    """
    return _document({PROGRAM: [_run_case(run)], **({"tests": list(_test_cases(run, run.tests))} if run.tests else {})})


def _document(suites: Mapping[str, list[TestCase]]) -> bytes:
    """Serialize the suites; the document is named after the first."""
    document = JUnitXml(next(iter(suites)))
    for name, cases in suites.items():
        suite = TestSuite(name)
        suite.add_testcases(cases)
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(document.tostring())  # type: ignore[no-untyped-call]


def _run_case(run: EndedRun) -> TestCase:
    flow = run.line(run.course.started.flow) or "run"
    case = TestCase(
        f"flow {flow}" if run.course.started.flow else flow, PROGRAM, _seconds(run.totals.get("seconds", 0.0))
    )
    if run.exit_code != 0:
        case.result = [_run_result(run)]
    case.system_out = printable("\n".join(_run_output(run)), keep="\n")
    return case


def _run_result(run: EndedRun) -> FinalResult:
    kind = Failure if run.exit_code == GOAL_NOT_REACHED else Error
    result = kind(run.headline, run.meaning)
    result.text = printable("\n".join([run.headline, run.meaning, *run.next_steps()]), keep="\n")
    return result


def _run_output(run: EndedRun) -> Iterator[str]:
    """Yield the output of the run's case: the run, and how each of its turns ended."""
    if run.folder is None:
        return
    yield f"run {run.name}: {run.headline} ({run.meaning})"
    yield f"goal: {run.line(run.course.started.goal, 500)}"
    yield f"folder: {run.folder.path}"
    if (tests := run.course.latest_tests) is not None:
        yield f"tests: {verdict(tests.told)}"
    turns = read_turns(run.folder)
    if len(turns) > MOST_TURNS:
        yield f"the last {MOST_TURNS} of {len(turns)} turns:"
    for turn in turns[-MOST_TURNS:]:
        said = run.line(turn["summary"] or turn.get("reason", ""))
        seconds = duration(float(turn.get("seconds") or 0))
        yield f"{turn['role']} turn {turn['turn']}: {turn.get('status', 'unknown')} in {seconds}: {said}"
    yield from (f"warning: {run.line(warning, 500)}" for warning in run.course.warnings)


def _test_cases(run: EndedRun, tests: LatestTests) -> Iterator[TestCase]:
    for case in tests.cases:
        yield _test_case(run, case)
    if tests.is_red and not tests.red:
        yield _failure_without_case(run, tests)


def _test_case(run: EndedRun, case: Case) -> TestCase:
    name, classname = run.line(case.name, LONGEST_MESSAGE), run.line(case.classname, LONGEST_MESSAGE)
    message, text = run.line(case.message, LONGEST_MESSAGE), run.redact(case.text)[-LONGEST_TEXT:]
    return _junit_case(replace(case, name=name, classname=classname, message=message, text=text))


def _failure_without_case(run: EndedRun, tests: LatestTests) -> TestCase:
    """Create a case for failed tests without a failed case: they timed out, could not run, or pytest itself failed."""
    result, seconds = tests.result, float(tests.result.get("seconds") or 0)
    message, text = f"{result.get('status')}: {result.get('reason')}", str(result.get("output_tail", ""))
    return _test_case(run, Case(PROGRAM, f"tests {tests.number:03d}", ERROR, seconds, message, text))


def _junit_case(case: Case) -> TestCase:
    junit_case = TestCase(printable(case.name), printable(case.classname), _seconds(case.seconds))
    kind = {FAILED: Failure, ERROR: Error, SKIPPED: Skipped}.get(case.outcome)
    if kind is not None:
        result = kind(printable(case.message), case.outcome)
        result.text = printable(case.text, keep="\n\t")
        junit_case.result = [result]
    return junit_case


def _seconds(seconds: float) -> float:
    return round(seconds, 3) if math.isfinite(seconds) else 0.0
