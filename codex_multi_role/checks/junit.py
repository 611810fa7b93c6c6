"""Read a JUnit report that untrusted tests left behind."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from junitparser import TestCase

MAX_REPORT_BYTES = 20 * 1024 * 1024
MAX_FAILURES = 20
MAX_MESSAGE_CHARACTERS = 2_000


@dataclass
class TestCounts:
    """What a report says. ``failures`` are ``{test, message}``, at most twenty."""

    __test__ = False

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)


def read_report(path: Path, kind: str = "JUnit report") -> bytes:
    """The report's bytes. Raises ValueError with the reason if it is missing, too large or not a plain file."""
    try:
        # Not following links, and not waiting for a pipe's writer: the tests could have put anything there.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise ValueError(f"pytest left no {kind}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_REPORT_BYTES:
            raise ValueError(f"the {kind} is too large or not a file")
        return file.read(MAX_REPORT_BYTES)


def parse_report(report: bytes) -> TestCounts:
    """Count the outcomes of a JUnit report. Raises ValueError if it is none."""
    from junitparser import JUnitXml, JUnitXmlError

    counts = TestCounts()
    try:
        document = JUnitXml.fromstring(report)
        for suite in document if isinstance(document, JUnitXml) else [document]:
            for case in suite:
                _count(case, counts)
    # A SyntaxError is what both XML parsers that junitparser may use raise for a broken document.
    except (JUnitXmlError, SyntaxError, ValueError, LookupError, RecursionError) as error:
        raise ValueError(f"the JUnit report cannot be read: {error}") from error
    return counts


def _count(case: TestCase, counts: TestCounts) -> None:
    from junitparser import Error, Failure, Skipped

    results = case.result
    bad = [result for result in results if not isinstance(result, Skipped)]
    counts.failed += sum(isinstance(result, Failure) for result in bad)
    counts.errors += sum(isinstance(result, Error) for result in bad)
    counts.skipped += bool(results) and not bad
    counts.passed += not results
    for result in bad[: MAX_FAILURES - len(counts.failures)]:
        message = (result.text or result.message or "").strip()
        test = "::".join(part for part in (case.classname, case.name) if part)
        counts.failures.append({"test": test, "message": message[-MAX_MESSAGE_CHARACTERS:]})
