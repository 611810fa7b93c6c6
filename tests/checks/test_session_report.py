"""What our plug-in sees of a session of pytest, and what is read of it.

Costs: each case is a session of pytest in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_multi_role.checks.environments import PLUGINS
from codex_multi_role.checks.session_report import EXIT_STATUS, FILE, OWN_FAILURE, PLUGIN, VARIABLE, SessionReport

TESTS = """\
import pytest, unittest

def test_good(): pass
def test_bad(): assert False
def test_off(): pytest.skip()
@pytest.mark.xfail
def test_expected(): assert False
@pytest.fixture
def breaks():
    yield
    raise OSError
def test_breaks(breaks): pass
class TestParts(unittest.TestCase):
    def test_parts(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(number, 1)
"""
MORE_FAILURES = "def pytest_runtest_logfinish():\n    session.testsfailed += 1\n"
MORE_FAILURES = f"def pytest_sessionstart(session):\n    globals()['session'] = session\n{MORE_FAILURES}"

HOOK = "def pytest_sessionfinish(session): session.exitstatus = 1"


def seen(folder: Path, *options: str, **files: str) -> SessionReport:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    own = ("--basetemp", str(folder / "temporary"))  # otherwise it sweeps what earlier sessions left in the common one
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "--continue-on-collection-errors", *own, *options]
    more = {"PYTHONPATH": str(PLUGINS), VARIABLE: str(folder / FILE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=folder, env={**os.environ, **more}, capture_output=True, check=False)
    return SessionReport.read(folder, ran.returncode)


@pytest.mark.real
def test_every_outcome_by_its_id(tmp_path: Path) -> None:
    report = seen(
        tmp_path,
        test_a=TESTS,
        test_b="import nothing_like_it.at_all\n",
        test_c="import pytest\npytest.skip(allow_module_level=True)\n",
    )
    outcomes = {test.removeprefix("test_a.py::"): outcome for test, outcome in report.tests.items()}
    assert outcomes == {
        **{"test_good": "passed", "test_bad": "failed", "test_off": "skipped", "test_expected": "skipped"},
        **{"test_breaks": "failed", "TestParts::test_parts": "failed", "test_b.py": "failed", "test_c.py": "skipped"},
    }
    assert (report.lacks, report.limit, report.session) == (
        {"test_b.py": "nothing_like_it"},
        "",
        {OWN_FAILURE: "passed", EXIT_STATUS: "passed"},
    )


@pytest.mark.real
@pytest.mark.parametrize(
    ("test", "conftest", "session"),
    [
        ("pass", MORE_FAILURES, {OWN_FAILURE: "failed", EXIT_STATUS: "passed"}),
        ("assert False", MORE_FAILURES, {OWN_FAILURE: "failed", EXIT_STATUS: "passed"}),
        ("pass", HOOK, {OWN_FAILURE: "passed", EXIT_STATUS: "failed"}),
        ("assert False", HOOK, {OWN_FAILURE: "passed", EXIT_STATUS: "failed"}),
        ("pass", "import atexit, os\natexit.register(os._exit, 1)", {OWN_FAILURE: "passed", EXIT_STATUS: "failed"}),
    ],
)
def test_session_is_told_apart_from_its_tests(
    tmp_path: Path, test: str, conftest: str, session: dict[str, str]
) -> None:
    assert seen(tmp_path, test_a=f"def test_x(): {test}\n", conftest=conftest).session == session


@pytest.mark.real
def test_session_that_stops_early(tmp_path: Path) -> None:
    two = "def test_a(): assert False\ndef test_b(): pass\n"
    report = seen(tmp_path, "-x", test_a=two)
    assert (report.limit, report.cut_short, [*report.tests]) == ("--maxfail=1", True, ["test_a.py::test_a"])
    assert not seen(tmp_path, "--maxfail=3", test_a=two).cut_short
    again = seen(tmp_path, "--lf", test_a=two)
    assert (again.limit, again.cut_short, [*again.tests]) == ("--lf", True, ["test_a.py::test_a"])


@pytest.mark.real
def test_workers_leave_the_file_to_their_controller(tmp_path: Path) -> None:
    report = seen(tmp_path, "-p", "xdist.plugin", "-n", "2", test_a=TESTS)
    assert len(report.tests) == 6
    assert report.tests["test_a.py::test_good"] == "passed"


@pytest.mark.parametrize("text", ["", "[]", '{"outcomes": {"a": "fine"}}', "[" * 100_000])
def test_file_that_is_not_ours_falls_back_to_the_junit_report(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    junit = '<testsuite><testcase file="test_a.py" classname="test_a" name="test_x"/></testsuite>'
    (tmp_path / "junit.xml").write_text(junit)
    report = SessionReport.read(tmp_path, 0)
    assert (report.tests, report.is_own) == ({"test_a.py::test_x": "passed"}, False)
