"""Run the tests on many mutants of one file from one process that has collected them once.

The process records which lines of the file each test reaches, and waits where pytest would start the tests. For each
mutant it forks: the child gives the loaded functions their mutated code and lets pytest continue with the tests that
the mutated statement can affect. A mutant has no outcome if its tests could behave differently in a new process: its
statement is executed on import, its code cannot replace that of the loaded functions, or its child crashes. If forks
cannot stand in for new processes at all, the process ends early and says why in ``problem.txt``.
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
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, ClassVar

import coverage
import pytest

SHARED = Path(os.environ.get("CODEX_MULTI_ROLE_WARM", ""))
"""For all processes that judge mutants of the same file: ``jobs``, a mutant per line, of which the first ``claimed``
bytes have been taken, and ``outcomes``, a file per mutant."""
SLOT = Path(os.environ.get("CODEX_MULTI_ROLE_WARM_SLOT", ""))
"""The folder of this process: the copy of the workspace, temporary files, ``problem.txt``."""
UNMUTATED_SECONDS = float(os.environ.get("CODEX_MULTI_ROLE_WARM_SECONDS", "0"))
TARGET = os.path.realpath(os.environ.get("CODEX_MULTI_ROLE_WARM_TARGET", ""))
LEAST_VERSION = (3, 10)
"""Since this version, each line of code that is executed is traced."""
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: orphans become children of this process."""
WITHOUT = ("codex_multi_role_measuring", "terminalreporter", "lfplugin", "nfplugin")
"""The plugins to do without: they print, or write down how the tests ended."""
KILL_ROUNDS = 200
ROUND_SECONDS = 0.01
OUTSIDE = ""
ANY_LINE = 0
FIXTURE = "fixture "
FORKS = {"os.fork", "os.forkpty"}
STARTING = {*FORKS, "os.exec", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "pty.spawn"}
OF_FUNCTIONS = 0x0001 | 0x0002
"""The flags CO_OPTIMIZED and CO_NEWLOCALS, which the code of a module or a class does not have both."""
RUNNING: dict[type, str] = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}


class LineRecorder:
    """Records from its creation until `stop`; `here` is the test or fixture that runs now, or `OUTSIDE`.

    What a fixture of a wider scope reaches counts for every test that names the fixture, because only the first of them
    sets it up.
    """

    def __init__(self) -> None:
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=[TARGET], messages=False)
        self._coverage.start()
        self._tracer = sys.gettrace()
        self._special: set[str] = set()
        self._fixtures: frozenset[str] = frozenset()
        self.here = OUTSIDE
        self.problem = ""
        self.is_on = self.is_noting = True
        sys.addaudithook(self._note)

    def enter(self, here: str, fixtures: Iterable[str] | None = None) -> str:
        """From now on ``here`` runs; returns what ran before."""
        before, self.here = self.here, here
        if fixtures is not None:
            self._fixtures = frozenset(fixtures)
        if sys.gettrace() is not self._tracer:
            self.problem = f"{before or 'the import'} replaces the trace function"
        else:
            self._coverage.switch_context(here)
        return before

    def context_of(self, fixture: str) -> str:
        """A fixture that a test asks for only while it runs may serve any other test, too."""
        return f"{FIXTURE}{fixture}" if fixture in self._fixtures else OUTSIDE

    def stop(self) -> None:
        self.is_on = False
        self._coverage.stop()

    def reach(self, items: Iterable[pytest.Item]) -> dict[int, set[str]]:
        """By line, the node ids of the ``items`` that reach it; `OUTSIDE` for those reached on import above all.

        At `ANY_LINE`: tests that start a program, which may import the file, or read the file's text.
        """
        users = {OUTSIDE: {OUTSIDE}, **{item.nodeid: {item.nodeid} for item in items}}
        for item in items:
            for name in getattr(item, "fixturenames", ()):
                users.setdefault(f"{FIXTURE}{name}", set()).add(item.nodeid)
        if OUTSIDE in self._special:
            self.problem = self.problem or "a program that may import the file is started on import"
        data = self._coverage.get_data()
        lines = {line: each for file in data.measured_files() for line, each in data.contexts_by_lineno(file).items()}
        found = {ANY_LINE: self._special, **lines}
        return {line: set[str]().union(*(users.get(each, ()) for each in contexts)) for line, contexts in found.items()}

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not (self.is_on and self.is_noting):
            return
        if event in STARTING:
            if self.here or event in FORKS or "python" in repr(arguments[:2]):
                self._special.add(self.here)
        elif event == "open" and self.here and Path(TARGET).name in str(arguments[0]):
            self._special.add(self.here)


class LoadedFunctions:
    """The functions of the file at ``path``, with the text ``text``, that exist now, wherever they are referred to."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._file_name = path, Path(path).name
        self._original = compile(text, path, "exec", dont_inherit=True)
        self._by_name: dict[tuple[str, int], list[FunctionType]] = {}
        self.problem = ""
        for each in gc.get_objects():
            kind = type(each)
            if kind is FunctionType and self._is_own(code := each.__code__):
                self._by_name.setdefault((code.co_name, code.co_firstlineno), []).append(each)
            elif kind in RUNNING and self._is_own(getattr(each, RUNNING[kind])):
                self.problem = "a generator or coroutine of the file already exists"

    def changes(self, text: str) -> list[tuple[FunctionType, CodeType]] | None:
        """The new code of each function if the file's text is ``text``; None if new code cannot replace the old.

        A function that does not exist yet gets its code from the one around it. A file that is not loaded has none.
        """
        if not self._by_name:
            return []
        found: list[tuple[FunctionType, CodeType]] = []
        changed = compile(text, self._path, "exec", dont_inherit=True)
        for old, new, is_outermost in _differing(self._original, changed):
            alike = self._by_name.get((old.co_name, old.co_firstlineno), ())
            functions = [each for each in alike if each.__code__ == old]
            if (is_outermost and not functions) or old.co_freevars != new.co_freevars:
                return None
            found += [(each, new) for each in functions]
        return found

    def _is_own(self, code: CodeType) -> bool:
        file = code.co_filename
        return file.endswith(self._file_name) and os.path.realpath(file) == self._path


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
        return recorder.problem

    def learn(self, notes: Path, code: int | None) -> str:
        """Note what the tests reach on the original; return why forks cannot be used."""
        if code != 0:
            return "a test fails in a fork, or after other tests than usual"
        if not self.is_restored():
            return "the tests change files"
        told = json.loads(notes.read_text())
        recorder.problem = recorder.problem or told["problem"]
        for line, tests in told["reach"]:
            self._reach.setdefault(line, set()).update(tests)
        for name in told["modules"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        return self.problem()

    def claim(self) -> Any:  # noqa: ANN401 - JSON
        """The next job that no process has claimed, None after the last; never one before those of this process."""
        with (SHARED / "jobs").open("rb") as jobs, (SHARED / "claimed").open("r+b") as claimed:
            fcntl.lockf(claimed, fcntl.LOCK_EX)  # waits: for another's line, ended by the deadline of all
            jobs.seek(max(self._position, int(claimed.read())))  # tests may have overwritten it
            job = jobs.readline()  # waits: for nothing: a file
            self._position = jobs.tell()
            claimed.seek(0)
            claimed.write(str(self._position).encode())
        return json.loads(job) if job else None

    def selected(self, lines: Sequence[int]) -> list[pytest.Item] | None:
        """The tests to run on a mutant of these lines; None if they must run in a new process."""
        tests = set[str]().union(*(self._reach.get(line, ()) for line in (ANY_LINE, *lines)))
        return None if OUTSIDE in tests else [item for item in self.items if item.nodeid in tests]

    def is_restored(self) -> bool:
        """Remove the files that a child added; False if it changed or removed others, the target excepted."""
        now = _files()
        for name in now.keys() - self._files.keys():
            with contextlib.suppress(OSError):
                path = Path(name)
                shutil.rmtree(path) if stat.S_ISDIR(now[name][0]) else path.unlink()
        return all(now.get(name) == before for name, before in self._files.items())


if __name__ == "codex_multi_role_warm":  # as pytest loads it; tests of ours import single classes
    recorder = LineRecorder()


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    if recorder.is_on:
        recorder.enter(item.nodeid, getattr(item, "fixturenames", ()))
    yield
    if recorder.is_on:
        recorder.enter(OUTSIDE)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None]:
    if not recorder.is_on or fixturedef.scope == "function":
        yield
        return
    before = recorder.enter(recorder.context_of(fixturedef.argname))
    yield
    recorder.enter(before)


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
            for function, code in changes:
                function.__code__ = code
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
        reach = [[line, sorted(tests)] for line, tests in recorder.reach(session.items).items()]
        told = {"reach": reach, "problem": recorder.problem, "modules": _new_modules()}
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
    ended = select.poll()  # waits: for a job, ended by its seconds
    ended.register(descriptor := os.pidfd_open(child), select.POLLIN)
    is_over = bool(ended.poll(1000 * seconds))
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # waits: for a child that was killed
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


def _differing(old: CodeType, new: CodeType, is_inside: bool = False) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """The functions whose code differs, with the new code, and whether no other function is around them.

    The code of a module or a class has been executed already.
    """
    if old == new:
        return
    is_function = old.co_flags & OF_FUNCTIONS == OF_FUNCTIONS
    if is_function:
        yield old, new, not is_inside
    inner = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new))
    for each, other in zip(*inner, strict=False):
        if each.co_name == other.co_name:  # a lambda may be gone
            yield from _differing(each, other, is_inside or is_function)
