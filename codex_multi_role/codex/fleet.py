"""All Codex processes of a run: started in the background before they are needed, stopped in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.codex_settings import user_home
from codex_multi_role.codex.home import sole_start
from codex_multi_role.codex.slots import Slots
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexMultiRoleError, CodexTimeout


def instance_name(role: str, number: int) -> str:
    """The name of the role's process with that number: ``role``, ``role.2``, ``role.3`` …"""
    return role if number == 1 else f"{role}.{number}"


@dataclass(frozen=True)
class Member:
    """How to start one role's process and thread.

    ``thread_id``: the thread of an earlier process of the role; ``inherited`` as in `RoleClient`.
    """

    role: str
    launch: Launch
    thread: ThreadSettings
    approvals: ApprovalPolicy
    wire_log: Path
    thread_id: str | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Started:
    """The fleet's report of a ready process; ``warning`` as in `model_warning`."""

    role: str
    pid: int
    thread_id: str
    seconds: float
    resumed: bool
    warning: str = ""


READY_SECONDS = 120.0
STOP_SECONDS = 30.0
AHEAD_SECONDS = 0.5
PARALLEL_STARTS = 8


class Fleet:
    """Owns the processes of ``roles``, and of others that are first requested later.

    ``describe`` returns a member when its process is to start, and may raise what the start may raise. ``first_alone``
    starts the first one before the rest, for a shared Codex home: it has one state database, and new processes race for
    it (measured: 7 of 8 die), including those of other runs. At most ``most`` are alive at once: an idle one is ended
    to make room for another role, and its thread is resumed when its role is requested again. ``inherited`` is the
    mapping that all members have.
    """

    def __init__(
        self,
        roles: Iterable[str],
        describe: Callable[[str], Member],
        *,
        version: str,
        redact: Callable[[str], str],
        on_started: Callable[[Started], None],
        on_restart: Callable[[str, str], None],
        first_alone: bool,
        most: int | None = None,
        inherited: dict[str, str] | None = None,
    ) -> None:
        self._inherited = inherited if inherited is not None else {}
        self._roles = tuple(roles)
        self._describe = describe
        self._members: dict[str, Member] = {}
        self._version = version
        self._redact = redact
        self._on_started = on_started
        self._on_restart = on_restart
        self._first_alone = first_alone
        self._slots = Slots(most, self._retire)
        self._lock = threading.Lock()  # waits: for no start of a process, and no file but a new home's
        self._clients: dict[str, Future[RoleClient]] = {}
        self._retired: dict[str, Future[RoleClient]] = {}
        self._outdated: set[str] = set()
        self._first: Future[RoleClient] | None = None
        self._spawned: list[RoleClient] = []
        self._stoppers: list[threading.Thread] = []
        self._cancelled = threading.Event()
        self._stopping = threading.Event()
        self._others_may_start = threading.Event()
        self._others_may_start.set()
        self._pool = ThreadPoolExecutor(PARALLEL_STARTS, thread_name_prefix="codex-start")

    def start(self, more: Iterable[str] = (), ahead: str = "") -> list[str]:
        """Start the roles there is room for, and then ``more``, in the background; returns at once which.

        ``ahead``: a member that has its first turn before the others. They start when its process answers, at the
        latest after `AHEAD_SECONDS`: beside them it would take half as long again (measured).
        """
        starting = self._slots.fill([*self._roles, *more])
        if ahead in starting:
            starting.sort(key=lambda role: role != ahead)
            self._others_may_start.clear()
        for role in starting:
            self._pool.submit(self._start_into, role, self._new(role))
        return starting

    @contextmanager
    def borrowed(self, role: str) -> Iterator[RoleClient]:
        """Yield the client of ``role`` for one turn, as soon as there is room for its process.

        Raises like `client`, and `RunInterrupted` once the run is cancelled.
        """
        longest_idle = self._slots.take(role)
        try:
            if longest_idle in self._retired:
                self._end(self._retired[longest_idle])
            yield self.client(role)
        finally:
            self._slots.give_back(role)

    def client(self, role: str) -> RoleClient:
        """The client of ``role`` (or ``role.2`` …), ready for a turn; a broken process is replaced, its thread kept.

        Raises the error of its start, or `CodexTimeout`. One caller per role at a time.
        """
        client = self._started(role)
        if client.broken:
            self._on_restart(role, client.broken)
        if client.broken or role in self._outdated:
            self._retire(role)
            client = self._started(role)
        return client

    def inherit(self, thread_id: str, last_turn: str) -> None:
        """Let members continue another run's thread as it was after ``last_turn``."""
        self._inherited[thread_id] = last_turn

    def renew(self, concerned: Callable[[str], bool]) -> None:
        """Restart each member ``concerned`` on its thread before its next turn, as ``describe`` then describes it."""
        with self._lock:
            self._outdated |= set(filter(concerned, self._members))

    def _started(self, role: str) -> RoleClient:
        if role not in self._clients:
            self._start_into(role, self._new(role))
        try:
            return self._clients[role].result(READY_SECONDS)
        except FutureTimeoutError:
            raise CodexTimeout(f"Codex for {role} was not ready within {READY_SECONDS:g} s") from None
        except CodexMultiRoleError:
            self._clients.pop(role, None)  # the next request starts it again
            raise

    def _new(self, role: str) -> Future[RoleClient]:
        with self._lock:
            self._clients[role] = future = Future[RoleClient]()
            self._first = self._first or future
        return future

    def _start_into(self, role: str, future: Future[RoleClient]) -> None:
        try:
            self._note_member(role)
            self._let_first_go(future)
            self._take_over(role, future)
            with self._alone(role, future):
                client = self._start_one(self._members[role])
            future.set_result(client)
        except BaseException as error:  # raised when the client is requested
            self._others_may_start.set()
            future.set_exception(error)

    def _let_first_go(self, future: Future[RoleClient]) -> None:
        if self._first is None or future is self._first:
            return
        if self._first_alone:
            wait([self._first], timeout=READY_SECONDS)
        self.let_first_start()

    def let_first_start(self) -> None:
        """Wait until the process started ``ahead``, if any, answers, at most `AHEAD_SECONDS`."""
        self._others_may_start.wait(AHEAD_SECONDS)

    def _note_member(self, role: str) -> None:
        with self._lock:
            if role not in self._members:
                self._members[role] = self._describe(role)

    def _alone(self, role: str, future: Future[RoleClient]) -> AbstractContextManager[None]:
        """Keep other runs out of the shared home during the first start."""
        if not (self._first_alone and future is self._first):
            return nullcontext()
        return sole_start(user_home(self._members[role].launch.environment), self._stopping)

    def _take_over(self, role: str, future: Future[RoleClient]) -> None:
        """Ensure that the role's previous process has ended, and continue with its thread and folder.

        The process to be started as ``future`` may have been retired already, while it waited to start.
        """
        retired = self._retired.get(role)
        client = self._end(retired) if retired is not None and retired is not future else None
        member = self._members[role]
        if client is not None:
            thread = client.thread.id if client.thread.used else member.thread_id
            folder = client.thread.settings.folder
            member = replace(member, thread=replace(member.thread, folder=folder), thread_id=thread)
        if role in self._outdated:
            self._outdated.discard(role)
            member = replace(self._describe(role), thread_id=member.thread_id)
        self._members[role] = member

    def _start_one(self, member: Member) -> RoleClient:
        began = time.monotonic()
        transport = AppServerTransport(member.launch, WireLog(member.wire_log, self._redact))
        client = RoleClient(transport, member.thread, member.approvals, member.inherited)
        with self._lock:
            if self._stopping.is_set():
                raise CodexTimeout("the run is stopping")
            self._spawned.append(client)
        if self._cancelled.is_set():
            client.cancel()
        try:
            client.start(self._version, member.thread_id, self._others_may_start.set)
        except BaseException:
            self._stop_one(client)
            raise
        seconds = time.monotonic() - began
        thread = client.thread
        self._on_started(
            Started(member.role, client.pid, thread.id, round(seconds, 3), thread.resumed, client.model_warning)
        )
        return client

    def _retire(self, role: str) -> None:
        """Make the next request for the role start another process, after this one has ended."""
        if role in self._clients:
            self._retired[role] = self._clients.pop(role)

    def _end(self, retired: Future[RoleClient]) -> RoleClient | None:
        """End the process; returns its client, None if it did not start. Idempotent."""
        if retired.exception() is not None:  # waits: for a start, ended by the deadlines of its requests
            return None
        self._stop_one(retired.result())  # waits: for nothing: it is done
        return retired.result()  # waits: for nothing: it is done

    def _stop_one(self, client: RoleClient) -> None:
        client.stop()
        with self._lock, suppress(ValueError):  # another thread is ending it too
            self._spawned.remove(client)

    def cancel(self) -> None:
        """Interrupt every running turn and prevent new ones. Returns at once."""
        self._slots.close()
        with self._lock:
            self._cancelled.set()
            clients = list(self._spawned)
        for client in clients:
            client.cancel()

    def stop_soon(self) -> None:
        """Start ending every process and prevent new turns; `stop` waits for the end."""
        self._slots.close()
        self._others_may_start.set()
        with self._lock:
            self._stopping.set()
            clients, self._spawned = self._spawned, []
        for client in clients:
            stopper = threading.Thread(target=client.stop, name="codex-stop", daemon=True)
            stopper.start()
            self._stoppers.append(stopper)

    def stop(self) -> None:
        """End all processes in parallel and wait for it. Idempotent."""
        self.stop_soon()
        end = time.monotonic() + STOP_SECONDS
        for stopper in self._stoppers:
            stopper.join(max(0.0, end - time.monotonic()))
        # waits: for starts, ended by the deadlines of their requests, or with their processes
        self._pool.shutdown(wait=True)
