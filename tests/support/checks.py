"""Checks called directly, on a workspace of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import codex_cli_bin
import pytest

from codex_multi_role.checks import CheckContext
from codex_multi_role.checks.interpreter import Interpreter, inspect
from codex_multi_role.codex.permissions import sandboxed
from codex_multi_role.workspace import Workspace
from codex_multi_role.workspace.commands import Sandbox, no_sandbox
from tests.support.console import WITHOUT_PLUGINS
from tests.support.teams import read
from tests.support.workspaces import write_files

MakeContext = Callable[..., CheckContext]
WITH_PLUGINS = {WITHOUT_PLUGINS: ""}
"""The environment of those checks whose pytest loads what is installed, as a user's does."""
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
"""Tests that try to leave the sandbox."""
FOO_CALC = "def double(x):\n    return x * 2\n"
FOO_TESTS = "from foo.calc import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
"""A package ``foo``, and its tests."""


@pytest.fixture
def make_context(tmp_path: Path) -> MakeContext:
    """``make_context({"test_x.py": source}, pytest_cmd=...)``: a context on a workspace with these files."""

    def make(
        files: Mapping[str, str],
        /,
        sandbox: Sandbox = no_sandbox,
        seconds: float = 60,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> CheckContext:
        root = tmp_path / "work"
        root.mkdir(exist_ok=True)
        write_files(root, {name: dedent(source) for name, source in files.items()})
        usual = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), WITHOUT_PLUGINS: "1"}
        return CheckContext(
            workspace=Workspace(root),
            folder=tmp_path / "runs" / "r1" / "tests" / "001",
            environment={**usual, **(environment or {})},
            deadline_seconds=seconds,
            sandbox=sandbox,
            options=options,
        )

    return make


def run_check(check: Callable[[CheckContext], Mapping[str, Any]], context: CheckContext) -> dict[str, Any]:
    """Run ``check``; its result, which is also in ``result.json`` of the check's folder."""
    result = dict(check(context))
    assert read(context.folder / "result.json") == result
    return result


@pytest.fixture
def codex_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Codex's own sandbox around a command; skips where the system allows none."""
    codex, home = codex_cli_bin.bundled_codex_path(), tmp_path / "codex_home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))

    def wrap(argv: Sequence[str], writable: Path) -> list[str]:
        return ["env", f"CODEX_HOME={home}", *sandboxed(codex, argv, writable)]

    probe = subprocess.run(wrap(["true"], tmp_path), cwd=tmp_path, capture_output=True, timeout=60, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no sandbox on this machine: {probe.stderr.decode(errors='replace')[-200:]}")
    return wrap


def shadowed_package(make_context: MakeContext, place: str) -> CheckContext:
    """Tests that get the package ``foo`` from ``place``, whatever path they are given."""
    tests = f"import sys\nsys.path.insert(0, {place!r})\n{FOO_TESTS}"
    files = {"lib/foo/__init__.py": "", "lib/foo/calc.py": FOO_CALC, "tests/test_calc.py": tests}
    return make_context(files, target="lib/foo/calc.py", tests="tests/test_calc.py")


@cache
def _others() -> dict[str, Interpreter]:
    """By version, the Pythons on PATH that have what tests need and are not of our version."""
    found = {}
    for folder in map(Path, os.environ["PATH"].split(":")):
        if (folder / "python3").is_file():
            python = inspect(Interpreter(folder / "python3", "--python"), Path("/"), os.environ, no_sandbox)
            if not python.problem and python.version != ".".join(map(str, sys.version_info[:3])):
                found[python.version] = python
    return found


@pytest.fixture
def others() -> dict[str, Interpreter]:
    return _others() or pytest.skip("no Python of another version on PATH has pytest and coverage")
