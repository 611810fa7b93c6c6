"""What a `replay-test` found, as JUnit XML: a test case for each recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from codex_multi_role.presentation.wording import one_line, printable
from codex_multi_role.replay_tests import DIFFERS, Replayed
from codex_multi_role.run_folder.atomic import write_bytes

SUITE = "replay-test"


def write_junit(path: Path, results: Sequence[Replayed]) -> None:
    """Replace ``path``. Raises `StorageError`."""
    suite = TestSuite(SUITE)
    for result in results:
        suite.add_testcase(_case(result))
    report = JUnitXml(SUITE)
    report.add_testsuite(suite)
    report.update_statistics()  # type: ignore[no-untyped-call]
    write_bytes(path, report.tostring())  # type: ignore[no-untyped-call]


def _case(result: Replayed) -> TestCase:
    case = TestCase(one_line(result.name), SUITE, result.seconds)
    if result.exit_code:
        kind = Failure if result.status == DIFFERS else Error
        found = kind(one_line(result.differences[0] if result.differences else result.status))
        lines = [*result.differences, *(line for diff in result.diffs.values() for line in diff.splitlines())]
        found.text = "\n".join(map(printable, lines))
        case.result = [found]
    return case
