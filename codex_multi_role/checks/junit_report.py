"""Read a JUnit report written by untrusted tests."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, JUnitXmlError, Skipped
from pydantic import Field

from codex_multi_role.checks.contract import CheckResult, ResultPart

if TYPE_CHECKING:
    from junitparser import TestCase as Case

MAX_REPORT_BYTES = 20 * 1024 * 1024
MAX_FAILURES = 20
MAX_MESSAGE_CHARACTERS = 2_000


class FailedTest(ResultPart):
    test: str
    message: str


class CountedTests(CheckResult):
    """What every check that runs pytest returns."""

    reason: str
    exit_code: int | None
    passed: int
    failed: int
    errors: int
    skipped: int
    other_counts: dict[str, int] = Field(default={})
    failures: list[FailedTest]
    seconds: float
    output_tail: str


@dataclass
class TestCounts:
    """The counts of a report. ``failures`` are ``{test, message}``, at most twenty.

    ``other_counts``: by their names, the other figures of pytest's last line, such as ``xfailed``; not from a report.
    """

    __test__ = False

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    other_counts: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)


def read_report(path: Path, kind: str = "JUnit report") -> bytes:
    """The report's bytes. Raises ValueError with the reason if it is missing, too large or not a plain file."""
    try:
        # Do not follow links, and do not wait for a pipe's writer: the tests could have put anything there.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise ValueError(f"pytest wrote no {kind}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_REPORT_BYTES:
            raise ValueError(f"the {kind} is too large or not a file")
        return file.read(MAX_REPORT_BYTES)


@dataclass(frozen=True)
class TestCase:
    """How one test ended: ``passed``, ``failed`` (a broken fixture included) or ``skipped``."""

    __test__ = False

    outcome: str
    seconds: float


def parse_report(report: bytes) -> TestCounts:
    """Count the outcomes of a JUnit report. Raises ValueError if it is invalid."""
    counts = TestCounts()
    for case in read_cases(report):
        _count(case, counts)
    return counts


def parse_cases(report: bytes, name_of: Callable[[Case], str] | None = None) -> dict[str, TestCase]:
    """Every test of a JUnit report by its name, by default ``class name::name``. Raises ValueError if it is invalid.

    A test whose fixture fails afterwards is reported twice and counts as failed.
    """
    found: dict[str, TestCase] = {}
    for case in read_cases(report):
        name = (name_of or _name)(case)
        earlier = found.get(name)
        outcome = "failed" if earlier and earlier.outcome == "failed" else _outcome(case)
        found[name] = TestCase(outcome, float(case.time or 0) + (earlier.seconds if earlier else 0))
    return found


def parse_outcomes(report: bytes) -> dict[str, str]:
    """The outcome of every test by its id, ``tests/test_a.py::TestB::test_c[1]``. Raises ValueError if it is invalid.

    A report whose cases name no file, as of another runner, gives the names of `parse_cases`.
    """
    return {test: case.outcome for test, case in parse_cases(report, test_id).items()}


def test_id(case: Case) -> str:
    """Pytest's id, from the file and the classes that the family ``xunit1`` reports."""
    file = case._elem.get("file") or ""
    if not file:
        return _name(case)
    if not case.classname:
        return str(file)  # a module that could not be collected
    file, classes = _collected(file, case.classname)
    return "::".join(part for part in (file, *classes, case.name) if part)


def junit_name(node: str) -> str:
    """The name in pytest's JUnit report of the test with the id ``node``: ``tests.test_a.TestX::test_y[1]``."""
    path, *names = node.partition("[")[0].split("::")
    place = [path.removesuffix(".py").replace("/", "."), *names[:-1]]
    return f"{'.'.join(place)}::{names[-1]}{''.join(node.partition('[')[1:])}" if names else place[0]


def _collected(file: str, classname: str) -> tuple[str, list[str]]:
    """The file that was collected, and the classes in it; ``file``: where the function is written.

    They differ if a class inherits its tests from one in another file. Only the dotted name then says which was
    collected, so its first part with a capital letter is taken for the first class.
    """
    module, parts = file.removesuffix(".py").replace("/", "."), classname.split(".")
    if f"{classname}.".startswith(f"{module}."):
        return file, classname.removeprefix(module).strip(".").split(".")
    modules = list(takewhile(lambda part: not part[:1].isupper(), parts))
    return f"{'/'.join(modules)}.py" if modules else file, parts[len(modules) :]


def read_cases(report: bytes) -> list[Case]:
    """Every test case of a JUnit report, as junitparser returns it. Raises ValueError if the report is invalid."""
    try:
        document = JUnitXml.fromstring(report)
        return [case for suite in (document if isinstance(document, JUnitXml) else [document]) for case in suite]
    # Both XML parsers that junitparser may use raise SyntaxError for a broken document.
    except (JUnitXmlError, SyntaxError, ValueError, LookupError, RecursionError) as error:
        raise ValueError(f"the JUnit report cannot be read: {error}") from error


def _name(case: Case) -> str:
    return "::".join(part for part in (case.classname, case.name) if part)


def _outcome(case: Case) -> str:
    if any(not isinstance(result, Skipped) for result in case.result):
        return "failed"
    return "skipped" if case.result else "passed"


def _count(case: Case, counts: TestCounts) -> None:
    results = case.result
    bad = [result for result in results if not isinstance(result, Skipped)]
    counts.failed += sum(isinstance(result, Failure) for result in bad)
    counts.errors += sum(isinstance(result, Error) for result in bad)
    counts.skipped += bool(results) and not bad
    counts.passed += not results
    for result in bad[: MAX_FAILURES - len(counts.failures)]:
        message = (result.text or result.message or "").strip()
        counts.failures.append({"test": _name(case), "message": message[-MAX_MESSAGE_CHARACTERS:]})
