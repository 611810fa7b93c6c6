from __future__ import annotations

import os
from textwrap import dedent

import psutil
import pytest

from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.workspace.commands import Sandbox
from tests.support.checks import ESCAPES, MakeContext

pytestmark = pytest.mark.real


def test_tests_cannot_leave_the_sandbox_and_their_report_can(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    context = make_context({"test_escapes.py": ESCAPES, ".git/config": "mine"}, sandbox=codex_sandbox)
    result = run_tests(context)
    assert (result["status"], result["passed"]) == ("passed", 8), result["output_tail"]
    assert (context.folder / "junit.xml").exists()
    assert (context.workspace.root / "made.txt").exists()
    assert (context.workspace.root / ".git" / "config").read_text() == "mine"


def test_coverage_is_measured_inside_it(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    files = {"a.py": "x = 1\n", "tests/test_a.py": f"import a, pathlib\n{dedent(ESCAPES)}"}
    context = make_context(files, sandbox=codex_sandbox, target="a.py")
    result = measure_coverage(context)
    assert (result["status"], result["coverage"], result["failed"]) == ("failed", 100.0, 1), result["output_tail"]
    # The one is the folder above the tests: the copy, which is theirs, and gone with what they made in it.
    assert "test_writing_outside_is_refused[folder3]" in str(result["failures"])
    assert {path.name for path in context.workspace.root.rglob("*")} == {"a.py", "tests", "test_a.py"}


def test_program_missing_in_the_sandbox_is_not_a_failed_test(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    result = run_tests(make_context({}, sandbox=codex_sandbox, pytest_cmd="no-such-program"))
    assert result["status"] == "could not run"
    assert "exit code" in str(result["reason"])


def test_deadline_reaches_into_the_sandbox(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    sleep = ["sleep", f"600.{os.getpid()}"]
    source = f"import subprocess, time\nsubprocess.Popen({['setsid', *sleep]})\ntime.sleep(600)\n"
    result = run_tests(make_context({"test_a.py": source}, sandbox=codex_sandbox, seconds=1.0))
    assert result["status"] == "timed out"
    assert sleep not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
