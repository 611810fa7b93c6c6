from __future__ import annotations

import os
from textwrap import dedent
from typing import Any

import psutil
import pytest

from codex_multi_role.checks.coverage import measure_coverage
from codex_multi_role.checks.mutation import judge_mutants
from codex_multi_role.checks.tests import run_tests
from codex_multi_role.workspace.commands import Sandbox
from tests.support.checks import MakeContext

ESCAPES = """
    import os, pathlib, socket, tempfile
    import pytest

    HERE = pathlib.Path(__file__).parent

    @pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", os.environ["HOME"], HERE.parent])
    def test_writing_outside_is_refused(folder):
        with pytest.raises(OSError):
            (pathlib.Path(folder) / "escaped.txt").write_text("x")

    def test_loopback_is_refused():
        with pytest.raises(PermissionError):
            socket.create_connection(("127.0.0.1", 9), 5)

    def test_the_network_is_refused():
        with pytest.raises(PermissionError):
            socket.create_connection(("192.0.2.1", 80), 5)

    def test_the_repository_is_refused():
        with pytest.raises(OSError):
            (HERE / ".git" / "config").write_text("x")

    def test_what_tests_need_works(tmp_path):
        (HERE / "made.txt").write_text("x")
        (tmp_path / "x").write_text("x")
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
"""


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


def test_mutants_are_judged_inside_it(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    pytest.importorskip("mutmut", reason="the extra [mutation] is not installed")
    source = "def one():\n    return 1\n"
    files = {"a.py": source, "tests/test_a.py": f"import a, pathlib\n{dedent(ESCAPES)}"}
    tests = files["tests/test_a.py"].replace(", HERE.parent", "") + "\ndef test_one(): assert a.one() == 1\n"
    context = make_context({**files, "tests/test_a.py": tests}, sandbox=codex_sandbox, target="a.py")
    result: dict[str, Any] = judge_mutants(context)
    assert (result["status"], result["killed"]) == ("ok", 1), result["reason"]
    assert {test: ids for test, ids in result["matrix"].items() if ids} == {"tests.test_a::test_one": ["2.1"]}
    assert {path.name for path in context.workspace.root.rglob("*")} == {"a.py", "tests", "test_a.py"}


def test_program_missing_in_the_sandbox_is_not_a_failed_test(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    result = run_tests(make_context({}, sandbox=codex_sandbox, pytest_cmd="no-such-program"))
    assert result["status"] == "could not run"
    assert "exit code" in str(result["reason"])


def test_deadline_reaches_into_the_sandbox(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    sleep = ["sleep", f"600.{os.getpid()}"]
    source = f"import subprocess, time\nsubprocess.Popen({['setsid', *sleep]})\ntime.sleep(600)\n"
    result = run_tests(make_context({"test_a.py": source}, sandbox=codex_sandbox, seconds=1.5))
    assert result["status"] == "timed out"
    assert sleep not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
