from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.checks.junit_report import TestCounts
from codex_multi_role.checks.tests import judge, run_tests
from codex_multi_role.workspace import CommandResult
from tests.support.checks import WITH_PLUGINS, MakeContext, run_check

pytestmark = pytest.mark.real

PASSING = {"test_a.py": "def test_a(): pass\ndef test_b(tmp_path): (tmp_path / 'x').write_text('x')\n"}


_run = partial(run_check, run_tests)


def _counts(result: dict[str, Any]) -> tuple[int, int, int, int]:
    return result["passed"], result["failed"], result["errors"], result["skipped"]


def test_passing_tests(make_context: MakeContext) -> None:
    context = make_context(PASSING)
    result = _run(context)
    assert (result["status"], result["reason"], result["exit_code"]) == ("passed", "", 0)
    assert _counts(result) == (2, 0, 0, 0)
    assert result["command"].startswith(f"{sys.executable} -m pytest -o cache_dir=")
    assert "2 passed" in (context.folder / "pytest_output.txt").read_text()
    assert (context.folder / "pytest_rc.txt").read_text() == "0\n"
    assert "<testcase" in (context.folder / "junit.xml").read_text()
    assert [path.name for path in context.workspace.root.iterdir()] == ["test_a.py"]


ERROR = "AssertionError: roman"
LIE = "def pytest_sessionfinish(session): session.exitstatus = 0\n"


@pytest.mark.parametrize(
    ("files", "status", "code", "counts"),
    [
        ({"test_a.py": "def test_a(worker_id): pass\n"}, "passed", 0, (1, 0, 0, 0)),
        ({"a.py": "x = 1\n"}, "no tests", 5, (0, 0, 0, 0)),
        ({"conftest.py": LIE, "test_a.py": "def test_a(): assert 0\n"}, "failed", 0, (0, 1, 0, 0)),
    ],
    ids=["with a plug-in of the environment", "none", "whose exit code lies"],
)
def test_tests_end(
    make_context: MakeContext, files: dict[str, str], status: str, code: int, counts: tuple[int, int, int, int]
) -> None:
    result = _run(make_context(files, environment=WITH_PLUGINS))
    assert (result["status"], result["exit_code"], _counts(result)) == (status, code, counts)


@pytest.mark.parametrize(
    ("source", "counts", "test", "message"),
    [
        ("def test_a(): pass\ndef test_b(): assert 1 == 2, 'roman'\n", (1, 1, 0, 0), "test_a::test_b", ERROR),
        ("import nowhere_to_be_found\n", (0, 0, 1, 0), "test_a", "No module named 'nowhere_to_be_found'"),
    ],
)
def test_failures_and_errors_are_reported_with_what_they_say(
    make_context: MakeContext, source: str, counts: tuple[int, int, int, int], test: str, message: str
) -> None:
    """Also the errors of a collection, which pytest writes to standard output: the role must see them."""
    result = _run(make_context({"test_a.py": source}))
    assert (result["status"], result["exit_code"], _counts(result)) == ("failed", 1, counts)
    [failure] = result["failures"]
    assert failure["test"] == test
    assert message in failure["message"]
    assert message in result["output_tail"]


def test_tests_that_hang_are_timed_out(make_context: MakeContext) -> None:
    context = make_context({"test_a.py": "import time\ndef test_a(): time.sleep(600)\n"}, seconds=0.7)
    result = _run(context)
    assert (result["status"], result["exit_code"]) == ("timed out", None)
    assert (context.folder / "pytest_rc.txt").read_text() == "\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [("no-such-program -q", "cannot run no-such-program"), ('pytest "unclosed', "No closing quotation")],
)
def test_command_that_cannot_be_run(make_context: MakeContext, command: str, reason: str) -> None:
    result = _run(make_context(PASSING, pytest_cmd=command))
    assert result["status"] == "could not run"
    assert reason in result["reason"]
    assert result["command"] == command


def test_success_without_a_report_is_not_believed(make_context: MakeContext) -> None:
    result = _run(make_context({"test_a.py": "import os\nprint('bye')\ndef test_a(): os._exit(0)\n"}))
    assert result["status"] == "could not run"
    assert result["reason"].startswith("pytest wrote no JUnit report (exit code 0)")


def test_forged_report_is_not_believed(make_context: MakeContext) -> None:
    forge = """
        import os, sys
        def test_a():
            path = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--junitxml"))
            os.symlink("/etc/hostname", path)
            os._exit(0)
    """
    context = make_context({"test_a.py": forge})
    assert _run(context)["status"] == "could not run"
    assert not (context.folder / "junit.xml").exists()


def test_pytest_run_by_something_else_is_read_all_the_same(make_context: MakeContext) -> None:
    result = _run(make_context(PASSING, pytest_cmd=f"sh -c '{sys.executable} -m pytest -q; exit 2'"))
    assert (result["status"], _counts(result)) == ("could not run", (2, 0, 0, 0))
    result = _run(make_context(PASSING, pytest_cmd=f"sh -c '{sys.executable} -m pytest -q'"))
    assert (result["status"], _counts(result)) == ("passed", (2, 0, 0, 0))


def test_workspaces_own_python_is_used_when_it_has_pytest(make_context: MakeContext) -> None:
    context = make_context(
        {".venv/lib/python3.12/site-packages/pytest/__init__.py": "", ".venv/bin/python": "#!/bin/sh\nexit 5"}
    )
    (context.workspace.root / ".venv/bin/python").chmod(0o755)
    assert _run(context)["command"].startswith(f"{context.workspace.root}/.venv/bin/python -m pytest")


def test_no_secret_reaches_the_tests(make_context: MakeContext) -> None:
    source = """
        import os, tempfile
        def test_environment():
            assert "MY_API_KEY" not in os.environ
            assert os.environ["KEPT"] == "yes"
            assert tempfile.gettempdir() == os.environ["TMPDIR"]
    """
    result = _run(make_context({"test_a.py": source}, environment={"MY_API_KEY": "x", "KEPT": "yes"}))
    assert result["status"] == "passed", result


def test_temporary_files_are_outside_workspace_and_removed(
    make_context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import os, pathlib\ndef test_a(): pathlib.Path('where').write_text(os.environ['TMPDIR'])\n"
    context = make_context({"test_a.py": source})
    monkeypatch.setattr(tempfile, "tempdir", str(context.workspace.root))
    assert _run(context)["status"] == "passed"
    where = Path((context.workspace.root / "where").read_text())
    assert not where.is_relative_to(context.workspace.root)
    assert not where.parent.exists()


GOOD, BAD, NONE = TestCounts(passed=1), TestCounts(passed=1, failed=1), TestCounts()


@pytest.mark.parametrize(
    ("exit_code", "counts", "status"),
    [
        (0, GOOD, "passed"),
        (0, TestCounts(skipped=1), "passed"),
        (0, NONE, "no tests"),
        (0, BAD, "failed"),
        (0, None, "could not run"),
        (1, BAD, "failed"),
        (1, GOOD, "failed"),
        (1, None, "could not run"),
        (2, TestCounts(errors=1), "failed"),
        (2, NONE, "could not run"),
        (3, GOOD, "could not run"),
        (3, BAD, "failed"),
        (4, None, "could not run"),
        (5, NONE, "no tests"),
        (5, None, "no tests"),
        (-9, None, "could not run"),
        (127, None, "could not run"),
    ],
)
def test_verdict(exit_code: int, counts: TestCounts | None, status: str) -> None:
    ran = CommandResult(exit_code, "some output\nlast line\n", False, 1.0, False)
    verdict, reason = judge(ran, counts, "no report")
    assert verdict == status
    assert bool(reason) == (status == "could not run" or (status, counts) == ("failed", GOOD))


def test_deadline_outranks_everything() -> None:
    assert judge(CommandResult(None, "", True, 9.0, False), GOOD, "") == ("timed out", "no result after 9 s")
