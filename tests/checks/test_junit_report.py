from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_multi_role.checks.junit_report import MAX_REPORT_BYTES, TestCounts, parse_outcomes, parse_report, read_report

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="6">
<testcase classname="tests.test_a" name="test_ok" time="0.1"><system-out>hi</system-out></testcase>
<testcase classname="tests.test_a" name="test_bad[1]">
<failure message="assert 1 == 2">Traceback\nE assert 1 == 2</failure></testcase>
<testcase classname="" name="tests.test_b"><error message="collection failure">ImportError</error></testcase>
<testcase classname="tests.test_a" name="test_skip"><skipped type="pytest.skip" message="no">why</skipped></testcase>
<testcase classname="tests.test_a" name="test_xfail"><skipped type="pytest.xfail" message="later"/></testcase>
<testcase classname="tests.test_a" name="test_both"><failure message="short"/><error message="teardown"/></testcase>
</testsuite></testsuites>"""


def test_every_outcome_is_counted() -> None:
    assert parse_report(REPORT.encode()) == TestCounts(
        passed=1,
        failed=2,
        errors=2,
        skipped=2,
        failures=[
            {"test": "tests.test_a::test_bad[1]", "message": "Traceback\nE assert 1 == 2"},
            {"test": "tests.test_b", "message": "ImportError"},
            {"test": "tests.test_a::test_both", "message": "short"},
            {"test": "tests.test_a::test_both", "message": "teardown"},
        ],
    )


def test_failures_are_bounded_in_number_and_length() -> None:
    case = f'<testcase name="t"><failure message="m">{"x" * 5_000}the end</failure></testcase>'
    counts = parse_report(f"<testsuite>{case * 50}</testsuite>".encode())
    assert (counts.failed, len(counts.failures)) == (50, 20)
    assert len(counts.failures[0]["message"]) == 2_000
    assert counts.failures[0]["message"].endswith("the end")


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"not xml",
        b"<testsuites><testsuite>",
        b"<html/>",
        b"\xff\xfe\x00",
        b'<?xml version="1.0" encoding="nonsense"?><testsuite/>',
        b"<testsuites>" + b"<testsuite>" * 5_000 + b"</testsuite>" * 5_000 + b"</testsuites>",
    ],
)
def test_invalid_report_is_refused(report: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        parse_report(report)


def test_report_must_be_a_plain_file_of_sensible_size(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_REPORT_BYTES + 1)
    for name in ("link", "missing"):
        with pytest.raises(ValueError, match="wrote no JUnit report"):
            read_report(tmp_path / name)
    for name in ("pipe", "large"):
        with pytest.raises(ValueError, match="too large or not a file"):
            read_report(tmp_path / name)


@pytest.mark.parametrize(
    ("file", "classname", "expected"),
    [
        ("tests/test_a.py", "tests.test_a", "tests/test_a.py::test_x"),
        ("tests/test_a.py", "tests.test_a.TestB.TestC", "tests/test_a.py::TestB::TestC::test_x"),
        ("tests/base.py", "tests.test_a.TestB", "tests/test_a.py::TestB::test_x"),
        ("../lib/stateful.py", "tests.test_a.TestB", "tests/test_a.py::TestB::test_x"),
        ("tests/test_a.py", "tests.test_ab.TestB", "tests/test_ab.py::TestB::test_x"),
        ("base.py", "Test", "base.py::Test::test_x"),
    ],
)
def test_id_names_the_file_that_was_collected(file: str, classname: str, expected: str) -> None:
    """Pytest reports the file where the function is written, which may be that of a base class."""
    report = f'<testsuite><testcase file="{file}" classname="{classname}" name="test_x"/></testsuite>'
    assert parse_outcomes(report.encode()) == {expected: "passed"}
