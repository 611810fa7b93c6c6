"""Run the tests on many mutants of one file from one process that has collected them once.

The process waits where pytest would start the tests. For each mutant it forks: the child gives the loaded functions
their mutated code and lets pytest continue with the tests that the mutated statement can affect. There is no outcome
for a mutant whose tests could behave differently in a new process: its statement is executed on import, its code cannot
replace that of the loaded functions, or its child crashes. If forks cannot stand in for new processes at all, the
process ends early and says why in ``problem.txt``.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from codex_multi_role.extensions.test_generation.plugins.codex_multi_role_functions import LoadedFunctions, apply
    from codex_multi_role.extensions.test_generation.plugins.codex_multi_role_lines import TARGET, Reach, recorder
else:
    from codex_multi_role_functions import LoadedFunctions, apply
    from codex_multi_role_lines import TARGET, Reach, recorder

SHARED = Path(os.environ["CODEX_MULTI_ROLE_WARM"])
"""For all processes that judge mutants of the same file: ``jobs``, a mutant per line, of which the first ``claimed``
bytes have been taken, and ``outcomes``, a file per mutant."""
SLOT = Path(os.environ["CODEX_MULTI_ROLE_WARM_SLOT"])
"""The folder of this process: the copy of the workspace, temporary files, ``problem.txt``."""
UNMUTATED_SECONDS = float(os.environ["CODEX_MULTI_ROLE_WARM_SECONDS"])
LEAST_VERSION = (3, 10)
"""Since this version, each line of code that is executed is traced."""
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: orphans become children of this process."""
WITHOUT = ("codex_multi_role_measuring", "terminalreporter", "lfplugin", "nfplugin")
"""The plugins to do without: they print, or write down how the tests ended."""
KILL_ROUNDS = 200
ROUND_SECONDS = 0.01


class WarmChild:
    """What a fork does at its end; no ``session`` in the process that forks."""

    session: pytest.Session | None = None
    notes: Path | None = None
    mutant = ""
    loaded: frozenset[str] = frozenset()
    passed: ClassVar[dict[str, bool]] = {}
    """Of each test that has run: whether it passed, its fixtures included."""


class Server:
    """Forks children, one at a time, and restores the files after each."""

    def __init__(self, session: pytest.Session) -> None:
        self.session, self.items = session, list(session.items)
        self.text = Path(TARGET).read_text(encoding="utf-8-sig")
        self._files = _files()
        self._reach = recorder.reach(self.items)
        self._position = 0

    def problem(self) -> str:
        """Why forks cannot be used; empty if nothing is known against it."""
        if sys.platform != "linux" or sys.version_info < LEAST_VERSION or not hasattr(os, "pidfd_open"):
            return "forks are used on Linux with Python 3.10 or later"
        if self.session.testsfailed or not self.items:
            return "not all tests could be collected"
        if threading.active_count() > 1 or Path("/proc/self").readlink().name != str(os.getpid()) or _children():
            return "threads or programs are running after the collection"
        return self._reach.problem

    def learn(self, notes: Path, code: int | None) -> str:
        """Note what the tests reach on the original; return why forks cannot be used."""
        if code != 0:
            return "a test fails in a fork, or after other tests than usual"
        if not self.is_restored():
            return "the tests change files"
        told = json.loads(notes.read_text())
        self._reach.add(Reach.from_json(told["reach"]))
        for name in told["modules"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        return self.problem()

    def claim(self) -> Any:  # noqa: ANN401 - JSON
        """The next job that no process has claimed, None after the last; never one before those of this process."""
        with (SHARED / "jobs").open("rb") as jobs, (SHARED / "claimed").open("r+b") as claimed:
            fcntl.lockf(claimed, fcntl.LOCK_EX)
            jobs.seek(max(self._position, int(claimed.read())))  # tests may have overwritten it
            job = jobs.readline()
            self._position = jobs.tell()
            claimed.seek(0)
            claimed.write(str(self._position).encode())
        return json.loads(job) if job else None

    def selected(self, lines: Sequence[int]) -> list[pytest.Item] | None:
        """The tests to run on a mutant of these lines; None if they must run in a new process."""
        if self._reach.outside.intersection(lines):
            return None
        tests = self._reach.tests(lines)
        return [item for item in self.items if item.nodeid in tests]

    def is_restored(self) -> bool:
        """Remove the files that a child added; False if it changed or removed others, the target excepted."""
        now = _files()
        for name in now.keys() - self._files.keys():
            with contextlib.suppress(OSError):
                path = Path(name)
                shutil.rmtree(path) if stat.S_ISDIR(now[name][0]) else path.unlink()
        return all(now.get(name) == before for name, before in self._files.items())


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Return None in a child: pytest's own loop then runs the tests of ``session.items``."""
    server = Server(session)
    if problem := server.problem():
        return _give_up(problem)
    for plugin in filter(session.config.pluginmanager.has_plugin, WITHOUT):
        session.config.pluginmanager.unregister(name=plugin)
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    for direction in (1, -1):  # what one test prepares for the next ones is reached by another one first
        WarmChild.notes, WarmChild.loaded = SLOT / f"notes{direction}.json", frozenset(sys.modules)
        if (pid := _fork(session, server.items[::direction], server.text)) == 0:
            return None
        if problem := server.learn(WarmChild.notes, _exit_code(pid, UNMUTATED_SECONDS)):
            return _give_up(problem)
    WarmChild.notes = None
    recorder.stop()
    functions = LoadedFunctions(TARGET, server.text)
    if functions.problem:
        return _give_up(functions.problem)
    for item in server.items:
        _ = item.location  # otherwise each child would look for it again
    gc.collect()
    gc.freeze()  # the children collect only their own garbage
    while job := server.claim():
        tests, changes = server.selected(job["lines"]), functions.changes(job["text"])
        if tests is None or changes is None:
            continue
        if not tests:
            _answer(job["id"], 0)
            continue
        WarmChild.mutant = job["id"]
        if (pid := _fork(session, tests, job["text"])) == 0:
            session.config.option.maxfail = job["maxfail"]
            apply(changes)
            return None
        _exit_code(pid, job["seconds"])
        if not server.is_restored():
            return _give_up(f"the tests of {job['id']} change files")
    return True


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
    """A failure without its description, which nobody reads, and which takes as long as a small test."""
    if WarmChild.session is None or call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
        return None
    assert call.when != "collect"
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", None, call.when, duration=call.duration)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    before = WarmChild.passed.get(report.nodeid, True)
    WarmChild.passed[report.nodeid] = before and report.passed


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End a child at once, unless a thread would keep a process from ending: Python's own end takes longer."""
    session = WarmChild.session
    if session is None:
        return
    if WarmChild.notes:
        told = {"reach": recorder.reach(session.items).as_json(), "modules": _new_modules()}
        WarmChild.notes.write_text(json.dumps(told))
    if all(each.daemon or each is threading.main_thread() for each in threading.enumerate()):
        if not WarmChild.notes:
            stopped = session.config.option.maxfail
            ran = [item for item in session.items if item.nodeid in WarmChild.passed]
            _answer(WarmChild.mutant, int(session.exitstatus), ran if stopped else session.items)
        os._exit(int(session.exitstatus))


def _give_up(problem: str) -> bool:
    (SLOT / "problem.txt").write_text(problem)
    return True


def _answer(mutant: str, code: int, tests: Sequence[pytest.Item] = ()) -> None:
    outcome = {"code": code, "tests": [item.nodeid for item in tests], "passed": WarmChild.passed}
    (SHARED / "outcomes" / f"{mutant}.json").write_text(json.dumps(outcome))


def _new_modules() -> list[str]:
    """The modules outside the project that were loaded since the fork."""
    files = {name: getattr(sys.modules[name], "__file__", None) for name in sys.modules.keys() - WarmChild.loaded}
    return sorted(name for name, file in files.items() if file and not file.startswith(str(SLOT)))


def _fork(session: pytest.Session, items: list[pytest.Item], text: str) -> int:
    _write_target(text)
    sys.stdout.flush()
    sys.stderr.flush()
    recorder.is_noting = False
    pid = os.fork()
    recorder.is_noting = True
    if pid == 0:
        os.setsid()
        WarmChild.session, session.items, session.testscollected = session, items, len(items)
    return pid


def _write_target(text: str) -> None:
    """Write over the old text: some filesystems write to the disk at once if a file is emptied first."""
    with open(os.open(TARGET, os.O_WRONLY | os.O_CREAT, 0o666), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
        file.truncate()


def _exit_code(child: int, seconds: float) -> int | None:
    """The exit code of ``child``; None if it had to be ended after ``seconds``. Ends all that it started, too."""
    ended = select.poll()
    ended.register(descriptor := os.pidfd_open(child), select.POLLIN)
    is_over = bool(ended.poll(1000 * seconds))
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for _ in range(KILL_ROUNDS):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not (rest := _children()):
            break
        for each in rest:
            os.kill(each, signal.SIGKILL)
        time.sleep(ROUND_SECONDS)
    return code if is_over else None


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for each in tasks for pid in (each / "children").read_text().split()]


def _files() -> dict[str, tuple[int, int, int]]:
    """What identifies the content of each file below the slot, except the target and our own notes."""
    found: dict[str, tuple[int, int, int]] = {}
    folders = [str(SLOT / each) for each in ("copy", "tmp", "pytest_cache")]
    while folders:
        with contextlib.suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
            for each in entries:
                status = each.stat(follow_symlinks=False)
                if each.is_dir(follow_symlinks=False):
                    folders.append(each.path)
                    found[each.path] = (status.st_mode, 0, 0)
                elif each.path != TARGET:
                    found[each.path] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found
