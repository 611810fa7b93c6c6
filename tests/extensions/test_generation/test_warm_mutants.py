"""Mutants judged from a process with loaded tests get the verdicts that a new process for each of them gives."""

from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.extensions.measuring import suite
from codex_multi_role.extensions.test_generation import kill_matrix
from codex_multi_role.extensions.test_generation.mutation import judge_mutants
from tests.support.checks import MakeContext

pytestmark = pytest.mark.real

pytest.importorskip("libcst", reason="the extra [mutation] is not installed")

VERDICTS = ("status", "reason", "mutants", "killed", "survived", "matrix", "unattributed")
HALF = "def half(n):\n    return (n + 1) // 2 + 3\n"
CLAIMS = """
    import os
    from pathlib import Path
    from target import half

    def test_half():
        if shared := os.environ.get("CODEX_MULTI_ROLE_WARM"):
            Path(shared, "claimed").write_text("{}")
        assert half(8) == 7
"""
SHELVES = """
    import pytest, target

    @pytest.fixture(scope="session")
    def shelf():
        yield target.stock(2)

    @pytest.fixture(scope="module")
    def found():
        return target.late()
"""
CASES: dict[str, tuple[str, str]] = {
    "constants and effects of an import": (
        """
        def half(n):
            return n // 2

        def one(n): return n + 1

        TABLE = {n: half(n) for n in range(4)}

        def look_up(n):
            found = TABLE[n]
            return found + one(0)
        """,
        """
        from target import TABLE, look_up
        import target

        def test_table(): assert TABLE[2] == 1
        def test_look_up(): assert look_up(3) == 2
        def test_one(): assert target.one(1) == 2
        """,
    ),
    "decorators, closures and other copies of a function": (
        """
        import functools
        from contextlib import contextmanager

        def twice(function):
            @functools.wraps(function)
            def call(*args):
                return function(*args) + function(*args)
            return call

        @twice
        def price(n):
            return n + 3

        @contextmanager
        def opened(log):
            log.append("open")
            yield len(log) + 1
            log.append("closed")

        def adder(n):
            def add(m):
                return m + n if m > 1 else m - n
            return add

        class Box:
            def __init__(self, size):
                self._size = size
            @property
            def size(self):
                return self._size * 2
            @classmethod
            def of(cls, size):
                return cls(size + 1)
        """,
        """
        from functools import partial
        from target import Box, adder, opened, price
        plus_two = adder(2)
        OF = partial(Box.of, 3)

        def test_price(): assert price(1) == 8
        def test_adder(): assert (plus_two(3), adder(1)(5)) == (5, 6)
        def test_box(): assert OF().size == 8
        def test_opened():
            log = []
            with opened(log) as size: assert size == 2
            assert log == ["open", "closed"]
        """,
    ),
    "fixtures of a wide scope, and a cache": (
        """
        from functools import cache

        def stock(count):
            return [count] * 3

        @cache
        def settings():
            return {"limit": 4}

        def total(items):
            return sum(items) + settings()["limit"]

        def late():
            return 7
        """,
        """
        import target

        def test_first(shelf): assert shelf
        def test_second(shelf): assert shelf == [2, 2, 2]
        def test_settings(): assert target.settings()
        def test_total(): assert target.total([1]) == 5
        def test_dynamic(request): assert request.getfixturevalue("found")
        def test_dynamic_again(request): assert request.getfixturevalue("found") == 7
        """,
    ),
    "other processes, imports and the text": (
        """
        def answer(n):
            if n > 1:
                return n * 2
            return 40 + n
        """,
        """
        import importlib, pathlib, subprocess, sys
        import pytest

        def test_program():
            code = "import target; print(target.answer(2))"
            assert subprocess.run([sys.executable, "-c", code], capture_output=True).stdout == b"4\\n"
        def test_late_import():
            import target
            assert importlib.reload(target).answer(1) == 41
        def test_text():
            assert "return 40" in (pathlib.Path(__file__).parent.parent / "target.py").read_text()
        def test_nothing(): pass
        """,
    ),
    "ends of a process": (
        """
        import ctypes, os, signal, sys

        def leave(n):
            if n == 1:
                os._exit(0)
            if n == 2:
                sys.exit("no")
            if n == 3:
                ctypes.string_at(0)
            if n == 4:
                os.killpg(0, signal.SIGKILL)
            if n == 5 and "CODEX_MULTI_ROLE_WARM" in os.environ:
                os.kill(os.getppid(), signal.SIGKILL)
            return n
        """,
        """
        from target import leave

        def test_before(): assert leave(0) == 0
        def test_leave(): assert leave(7) == 7
        """,
    ),
    "waiting": (
        """
        import subprocess, sys, threading, time

        def count(n):
            i = 0
            while i < n:
                i += 1
            return i

        def start(n):
            if n > 1:
                subprocess.Popen(["sleep", "60"], start_new_session=True)
            return n
        """,
        """
        from target import count, start

        def test_none(): assert count(0) == 0
        def test_two(): assert count(2) == 2
        def test_start(): assert start(1) == 1
        """,
    ),
    "files": (
        """
        from pathlib import Path
        HERE = Path(__file__).parent

        def mark(n):
            if n > 1:
                (HERE / "kept.txt").write_text("changed")
            if n > 0:
                (HERE / "mark").touch()
            return (HERE / "kept.txt").read_text()
        """,
        """
        from target import HERE, mark

        def test_mark():
            assert not (HERE / "mark").exists()
            assert mark(1) == "kept"
        """,
    ),
    "tests that need each other": (
        """
        STATE = []

        def first(n):
            STATE.append(n + 1)
            return n

        def second():
            return STATE[-1] * 2
        """,
        """
        from target import first, second

        def test_a(): assert first(1) == 1
        def test_b(): assert second() == 4
        """,
    ),
    "a generator since the import": (
        """
        def numbers(n):
            yield n + 1
            yield n * 2

        found = numbers(2)
        """,
        """
        from target import found

        def test_numbers(): assert list(found) == [3, 4]
        """,
    ),
    "a thread since the import": (
        """
        import threading

        def work(n):
            return n + 1

        def rest(n):
            return n * 2

        threading.Thread(target=threading.Event().wait, daemon=True).start()
        """,
        """
        from target import rest, work

        def test_work(): assert (work(1), rest(2)) == (2, 4)
        """,
    ),
    "tests that damage what the processes share": (HALF, CLAIMS.format("nothing")),
    "tests that put back what the processes share": (HALF, CLAIMS.format("0")),
}
MORE_FILES = {
    "fixtures of a wide scope, and a cache": {"tests/conftest.py": SHELVES},
    "files": {"kept.txt": "kept"},
}
ALONE = {
    *("tests that need each other", "tests that damage what the processes share"),
    *("a generator since the import", "a thread since the import"),
}
"""Where each mutant needs a new process."""
GRADE = "def grade(points):\n    if points < 50:\n        return 'failed'\n    return 'passed'\n"
TESTS = """
    from grade import grade

    def test_edge(): assert grade(50) == 'passed'
    def test_far(): assert grade(10) == 'failed'
    def test_other(): pass
"""


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_forks_give_the_verdicts_of_new_processes(
    case: str, make_context: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here both ways judge the same mutants."""
    source, tests = CASES[case]
    files = {"target.py": source, "tests/test_a.py": tests, **MORE_FILES.get(case, {})}
    context = make_context(files, seconds=500, target="target.py")
    processes = _counted(monkeypatch)
    forked: Any = judge_mutants(context)
    own_processes = processes.count(False) - 1  # the first one runs the original
    monkeypatch.setattr(kill_matrix, "run_warm", lambda *_: {})
    alone: Any = judge_mutants(context)
    assert [(name, forked[name]) for name in VERDICTS] == [(name, alone[name]) for name in VERDICTS]
    assert (alone["status"], alone["left"]) == ("ok", 0)
    assert min(alone["killed"], alone["mutants"]) > 0
    assert (own_processes == forked["mutants"]) is (case in ALONE)


def test_forks_run_the_tests_that_reach_the_mutant(make_context: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    processes = _counted(monkeypatch)
    context = make_context({"grade.py": GRADE, "tests/test_grade.py": TESTS}, target="grade.py", concurrency=1)
    result: Any = judge_mutants(context)
    assert (result["mutants"], result["killed"], processes) == (6, 6, [False, True])
    assert result["matrix"] == {
        "tests.test_grade::test_edge": ["2.1", "2.2", "4.1", "4.2"],
        "tests.test_grade::test_far": ["3.1", "3.2"],
        "tests.test_grade::test_other": [],
    }


@pytest.mark.long
def test_forks_stop_at_the_first_failure_without_a_matrix(make_context: MakeContext) -> None:
    """Only here mutants are judged without a matrix."""
    twice = f"{TESTS}\n    def test_edge_again(): assert grade(50) == 'passed'\n"
    context = make_context({"grade.py": GRADE, "tests/test_grade.py": twice}, target="grade.py", matrix=False)
    result: Any = judge_mutants(context)
    assert (result["killed"], result["unattributed"], result["survived"]) == (6, [], 0)
    assert result["matrix"]["tests.test_grade::test_edge"] == ["2.1", "2.2", "4.1", "4.2"]
    assert result["matrix"]["tests.test_grade::test_edge_again"] == []


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each process that runs the suite is one that forks."""
    started: list[bool] = []
    run_copy = suite.Suite.run_copy

    def counting(*args: Any) -> Any:
        started.append("codex_multi_role_warm" in args[2])
        return run_copy(*args)

    monkeypatch.setattr(suite.Suite, "run_copy", counting)
    return started
