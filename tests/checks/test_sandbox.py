"""What tests can reach in their sandbox, and what ends with it.

Costs: each case is a real suite in a real sandbox.
"""

from __future__ import annotations

import os
import re
import sys
from textwrap import dedent

import psutil
import pytest

from codex_multi_role.checks.tests import run_tests
from codex_multi_role.workspace.commands import Sandbox
from tests.support.checks import ESCAPES, MakeContext, run_check

pytestmark = pytest.mark.real


def test_tests_cannot_leave_the_sandbox_and_their_report_can(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    context = make_context({"test_escapes.py": ESCAPES, ".git/config": "mine"}, sandbox=codex_sandbox)
    result = run_tests(context)
    assert (result["status"], result["passed"]) == ("passed", 8), result["output_tail"]
    assert (context.folder / "junit.xml").exists()
    assert (context.workspace.root / "made.txt").exists()
    assert (context.workspace.root / ".git" / "config").read_text() == "mine"


DENIED = """
    import asyncio, errno, http.server, os, socket, unittest, urllib.request
    from unittest.mock import patch
    import pytest

    @pytest.fixture
    def server(): return http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)

    def test_socket_bound(): socket.create_server(("127.0.0.1", 0))
    def test_socket_datagram(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    def test_socket_local(tmp_path): socket.socket(socket.AF_UNIX).bind(str(tmp_path / "s"))
    def test_socket_of_a_fixture(server): pass
    def test_socket_of_a_client(): urllib.request.urlopen("http://127.0.0.1:9/", timeout=3)
    def test_socket_in_a_loop(): asyncio.run(asyncio.wait_for(asyncio.open_connection("127.0.0.1", 9), 3))

    def test_socket_behind_another_error():
        try:
            socket.create_connection(("127.0.0.1", 9), 3)
        except OSError as error:
            raise RuntimeError("no connection") from error

    class TestServer(unittest.TestCase):
        def setUp(self): socket.create_server(("127.0.0.1", 0))
        def test_socket_of_setup(self): pass

    def test_file_outside(): open("/var/tmp/escaped.txt", "w")
    def test_folder_outside(): os.mkdir("/opt/escaped")

    def test_own_assertion():
        try:
            socket.create_connection(("127.0.0.1", 9), 3)
        except OSError as error:
            assert error.errno == errno.ECONNREFUSED, "Operation not permitted"

    def test_own_failure():
        with pytest.raises(ConnectionError):
            raise ValueError("[Errno 1] Operation not permitted")

    def test_own_error(): raise PermissionError(errno.EPERM, "Operation not permitted")

    def test_own_mock():
        with patch("socket.socket.connect", side_effect=PermissionError(errno.EPERM, "no")):
            socket.socket.connect("x")

    def test_own_file(tmp_path):
        (tmp_path / "x").mkdir(mode=0)
        os.unlink(tmp_path / "x")

    def test_socket_denied_as_expected():
        with pytest.raises(PermissionError):
            socket.create_connection(("127.0.0.1", 9), 3)
"""


@pytest.mark.parametrize("options", ["", "-p xdist.plugin -n 2"], ids=["one process", "processes"])
def test_error_names_what_the_sandbox_denies(make_context: MakeContext, codex_sandbox: Sandbox, options: str) -> None:
    files = {"test_a.py": DENIED, "test_b.py": "import socket\n\nsocket.create_server(('127.0.0.1', 0))\n"}
    command = f"{sys.executable} -m pytest {options}"
    result = run_check(run_tests, make_context(files, sandbox=codex_sandbox, pytest_cmd=command))
    denied: set[str] = {*re.findall(r"def (test_(?:socket|file|folder)\w+)", DENIED)} - {
        "test_socket_denied_as_expected"
    }
    assert {test.rpartition("::")[2] for test in result["forbidden_tests"]} == {"test_b.py", *denied}
    assert result["forbidden"] == {"sockets": 9, "files outside the workspace": 2}
    assert (result["passed"], result["failed"]) == (1, 14), result["output_tail"]


def test_without_the_sandbox_it_has_denied_nothing(make_context: MakeContext) -> None:
    source = "def test_a():\n    open('/proc/version', 'w')\n    open('/proc/sys/kernel/ostype', 'w')\n"
    result = run_tests(make_context({"test_a.py": source}))
    assert (result["failed"], result.get("forbidden", {})) == (1, {})


@pytest.mark.extensions
def test_coverage_is_measured_inside_it(make_context: MakeContext, codex_sandbox: Sandbox) -> None:
    from codex_multi_role.extensions.measuring.coverage import measure_coverage

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
