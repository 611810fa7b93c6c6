"""A process and all its descendants, including orphans and those in other groups or sessions."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from codex_multi_role.errors import NO_DESCRIPTOR

COMMAND = "CODEX_MULTI_ROLE_COMMAND"
RUN = "CODEX_MULTI_ROLE_RUN"
GRACE_SECONDS = 2.0
_KILL_ROUNDS = 3
_POLL_SECONDS = 0.01
_STARTING_SECONDS = 2.0
Seen = TypeVar("Seen")


class Family:
    """The processes that one command started.

    They are found by session, by parent, and by a mark in the environment that every child inherits, because an orphan
    in its own session has nothing else. Members have ``mark``, or a path below it, as ``variable``. If ``others`` is
    set, all other descendants of this process are members as well, marked or not, such as git; but neither the
    ``others`` nor their descendants, such as a program's database server and its workers; and not while another family
    is `at_work`, because nobody knows whose they are. Processes whose pids are ``spared`` are left alone. A signal is
    sent to a pid only if its start time has not changed; names mean nothing.
    """

    def __init__(self, variable: str = COMMAND, mark: str = "") -> None:
        self.leader = 0
        self.variable = variable
        self.mark = mark or uuid.uuid4().hex
        self.others: set[psutil.Process] | None = None
        self.spared = {os.getpid()}  # a command of another run may have started this one, and marked it
        self._seen: set[psutil.Process] = set()

    @classmethod
    def of_run(cls, folder: Path, part: str = "") -> Family:
        """The processes of the run in ``folder``, or of one ``part`` of it, such as a role's process."""
        return cls(RUN, str(folder / part))

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Within the block, this process works for the family; on its main thread, most likely for nothing else."""
        if threading.current_thread() is threading.main_thread():
            self.others = set(processes_below(os.getpid()))
        _AT_WORK.append(self)
        try:
            yield
        finally:
            _AT_WORK.remove(self)

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment to start the command with."""
        return {**environment, self.variable: self.mark}

    def adopt(self, processes: Iterable[psutil.Process]) -> None:
        """Add members, marked or not: those below the leader, before it ends and nothing else identifies them."""
        self._seen.update(processes)

    def end(self) -> int:
        """End all members: SIGTERM, then SIGKILL. Takes at most a few times GRACE_SECONDS, usually no time.

        Returns how many were running at first.
        """
        found = self._end_once(signal.SIGTERM)
        if found:
            # A process may fork during the search, hence more than one round.
            for _ in range(_KILL_ROUNDS):
                if not self._end_once(signal.SIGKILL):
                    break
        return found

    def kill(self) -> None:
        """Send SIGKILL to all members without waiting."""
        for process in self.members():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _end_once(self, how: signal.Signals) -> int:
        """Signal all members and wait for them; returns how many were signalled."""
        members = self.members()
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.send_signal(how)
        deadline = time.monotonic() + GRACE_SECONDS
        while any(map(lives, members)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return len(members)

    def members(self) -> list[psutil.Process]:
        """The members that are running now."""
        found = {each.process for each in _MARKS.seen() if self._owns(each)} | self._seen
        if self.leader:
            found.update(_processes([self.leader, *_session_of(self.leader)]), processes_below(self.leader))
        if self.others is not None and {*_AT_WORK} <= {self}:
            found.update(_below_except(os.getpid(), self.others))
        return [process for process in found if process.pid not in self.spared and lives(process)]

    def _owns(self, seen: _Marked) -> bool:
        return f"{seen.marks.get(self.variable, '')}/".startswith(f"{self.mark}/")


_AT_WORK: list[Family] = []


@dataclass(frozen=True)
class _Marked:
    """A process, and those of our variables that its environment has."""

    process: psutil.Process
    marks: Mapping[str, str]


class _SharedLook(Generic[Seen]):
    """Lets threads that look for processes at the same time share a look, each one that began after it asked.

    A run ends all its Codex processes at once, and each end has to look at every process of the machine. The locks are
    reentrant, because a signal may ask while its own thread is looking.
    """

    def __init__(self, look: Callable[[], Seen]) -> None:
        self._look = look
        self._asking_lock = threading.RLock()  # waits: for one attribute
        self._looking_lock = threading.RLock()  # waits: for one look at all processes, ended by STARTING_SECONDS
        self._next: Future[Seen] | None = None

    def seen(self) -> Seen:
        """What a look finds. Raises what it raises."""
        with self._asking_lock:
            mine = self._next = self._next or Future()
        with self._looking_lock:
            if not mine.done():
                with self._asking_lock:
                    self._next = None
                mine.set_result(self._look())
        return mine.result()  # waits: for nothing: it is done


def _look_for_marks() -> list[_Marked]:
    return [_Marked(process, _marks(process)) for process in _processes(filter(_may_be_marked, psutil.pids()))]


def _may_be_marked(pid: int) -> bool:
    """Whether the process has a mark, or none only because its program is starting.

    `psutil` would tell as well, but takes ten times as long for all processes of a machine.
    """
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended, or belongs to somebody else, or this is no Linux
        return sys.platform != "linux"
    return not environment or any(f"{variable}=".encode() in environment for variable in (COMMAND, RUN))


def _look_for_children() -> dict[int, list[psutil.Process]]:
    """All descendants of this process, by their parent's pid."""
    found: dict[int, list[psutil.Process]] = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found.setdefault(process.ppid(), []).append(process)
    return found


_MARKS = _SharedLook(_look_for_marks)
_CHILDREN = _SharedLook(_look_for_children)


def _marks(process: psutil.Process) -> dict[str, str]:
    """Empty for a process that has ended, or belongs to somebody else."""
    with contextlib.suppress(psutil.Error, OSError):
        return {name: value for name, value in _environment(process).items() if name in (COMMAND, RUN)}
    return {}


def _environment(process: psutil.Process) -> dict[str, str]:
    """The environment of ``process``, once it has one.

    After a program's parent learns that it runs, Linux shows neither its environment nor its arguments until ``execve``
    has ended in the kernel, which may take a while on a busy machine.
    """
    while not (found := process.environ()) and _is_starting(process):  # waits: for a start, ended by STARTING_SECONDS
        time.sleep(_POLL_SECONDS)
    return found


def _is_starting(process: psutil.Process) -> bool:
    """Whether its program starts. One that is ending has no arguments either, but also no program any more."""
    is_new = time.time() - process.create_time() < _STARTING_SECONDS
    return is_new and lives(process) and not process.cmdline() and bool(process.exe())


def ending_in_words(code: int | None) -> str:
    """How a process with this return code ended: completes "ended with …"."""
    return f"exit code {code}" if code is None or code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"


def has_free_descriptor() -> bool:
    """Whether another file can be opened. Libraries such as SQLite do not report why they failed to open theirs."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in NO_DESCRIPTOR
    return True


def processes_below(pid: int) -> list[psutil.Process]:
    """All current descendants of ``pid``, which is this process or one that it started.

    Unlike with ``psutil``, threads that ask at the same time share one look.
    """
    if pid == os.getpid() and not _has_children():
        return []
    children, found = _CHILDREN.seen(), [pid]
    for each in found:
        found += [child.pid for child in children.get(each, ()) if child.pid not in found]
    return [child for each in found for child in children.get(each, ())]


def _has_children() -> bool:
    """Whether this process has or may have any, also ended ones; at once, without a look at all processes."""
    if not hasattr(os, "waitid"):  # macOS, before Python 3.13
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _below_except(pid: int, others: Set[psutil.Process]) -> Iterator[psutil.Process]:
    """The descendants of ``pid`` that are neither among ``others`` nor below one of them."""
    below = {process.pid: process for process in processes_below(pid)}
    for process in below.values():
        ancestor: psutil.Process | None = process
        with contextlib.suppress(psutil.Error):  # it has ended
            while ancestor is not None and ancestor not in others:
                ancestor = below.get(ancestor.ppid())
            if ancestor is None:
                yield process


def _session_of(leader: int) -> Iterator[int]:
    """The pids in the session of ``leader``, who may have ended."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                yield pid


def _processes(pids: Iterable[int]) -> Iterator[psutil.Process]:
    """Those of the processes that exist, without `psutil.process_iter`, which caches them between calls.

    After the system reuses a pid, its cache would once return the old, dead process instead of the new one. The cache
    is also not thread-safe.
    """
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid)


def lives(process: psutil.Process) -> bool:
    """Whether ``process`` can still do anything; a zombie only waits for its parent, which may take its time.

    A zombie with several threads has not ended: only its first thread has, and the others may still write.
    """
    try:
        return process.is_running() and (process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.Error:
        return False
