"""A pure test starts no process except git, and each system and command has one real test on every Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.console import offered_commands
from tests.support.rings import Rings

pytest_plugins = ["pytester"]
SUITE = """
import subprocess, sys, threading
from contextlib import suppress
import pytest
from tests.support.preloaded import Preloaded

begin, ended = threading.Event(), threading.Event()

def start(program):
    subprocess.run([program, "--version"])

def start_later():
    begin.wait()
    start("sh")
    ended.set()

@pytest.fixture(scope="module")
def shared():
    start("sh")

def test_git():
    start("git")

def test_fails_shell():
    start("sh")

def test_fails_that_swallows_errors():
    with suppress(BaseException):
        start("no-such-program")

def test_fails_preloaded():
    Preloaded([sys.executable, "-c", ""]).wait()

@pytest.mark.real
def test_real(shared):
    threading.Thread(target=start_later).start()

def test_fails_by_shared_fixture(shared):
    pass

def test_beside_a_thread_of_an_earlier_test():
    begin.set()
    ended.wait()

@pytest.mark.long
def test_long():
    start("sh")
"""


@pytest.mark.real
def test_pure_tests_that_start_programs_fail(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", plugins=[Rings()])
    result.assert_outcomes(passed=8, errors=4)
    failed = {line.partition("::")[2].split()[0] for line in result.outlines if line.startswith("ERROR")}
    assert len(failed) == 4
    assert all(name.startswith("test_fails_") for name in failed)
    result.stdout.fnmatch_lines(["*mark it @pytest.mark.real*", "  sh (*test_pure_tests*:*)"])


TOP = Path(__file__).parents[1]
SAMPLE = re.compile(r"^@pytest\.mark\.sample(\(.*\))$", re.MULTILINE)
PURE = {"apply", "config", "diff", "export", "init", "reject", "runs", "schema", "show", "trust"}
"""Commands that start no process except git: the pure tests of the command line try them on every Python."""
ELSEWHERE = {"demo"}
"""`tests/test_installation.py` tries it, which the gate does once."""


def test_every_system_and_command_has_one_sample() -> None:
    marks = [mark for path in (TOP / "tests").rglob("test_*.py") for mark in SAMPLE.findall(path.read_text())]
    names = [name for mark in marks for name in ast.literal_eval(f"{mark[:-1]},)")]
    folders = (path.parent for path in (TOP / "codex_multi_role/extensions").glob("*/__init__.py"))
    systems = [folder.name for folder in folders if not (folder / "extension.py").exists()]
    assert sorted(names) == sorted({*offered_commands(), *systems} - PURE - ELSEWHERE)
