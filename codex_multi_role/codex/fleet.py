"""All Codex processes of a run: started in the background before they are needed, stopped in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.client import RoleClient, ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport, Launch
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexTimeout

READY_SECONDS = 120.0
PARALLEL_STARTS = 8


@dataclass(frozen=True)
class Member:
    """How to start one role's process and thread.

    ``thread_id``: the thread that an earlier process of the role had; ``inherited`` as in `RoleClient`.
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
    """What the fleet tells of a process that is ready."""

    role: str
    pid: int
    thread_id: str
    seconds: float
    resumed: bool


class Fleet:
    """Owns the processes. ``first_alone`` starts the first one before the rest, for a Codex home they share.

    ``more`` tells how to start one that is asked for later. A shared home has one state database, and fresh processes
    race for it (measured: 7 of 8 die).
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        *,
        more: Callable[[str], Member] | None = None,
        version: str,
        redact: Callable[[str], str],
        on_started: Callable[[Started], None],
        on_restart: Callable[[str, str], None],
        first_alone: bool,
    ) -> None:
        self._members = dict(members)
        self._more = more
        self._version = version
        self._redact = redact
        self._on_started = on_started
        self._on_restart = on_restart
        self._first_alone = first_alone
        self._lock = threading.Lock()
        self._clients: dict[str, Future[RoleClient]] = {role: Future() for role in members}
        self._spawned: list[RoleClient] = []
        self._stoppers: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(PARALLEL_STARTS, thread_name_prefix="codex-start")

    def start(self) -> None:
        """Begin to start every member; returns at once."""
        first = next(iter(self._clients), None)
        for role, future in self._clients.items():
            later = self._first_alone and role != first
            self._pool.submit(self._start_after_first if later else self._start_into, role, future)

    def _start_after_first(self, role: str, future: Future[RoleClient]) -> None:
        first = next(iter(self._clients.values()))
        wait([first], timeout=READY_SECONDS)
        self._start_into(role, future)

    def _start_into(self, role: str, future: Future[RoleClient]) -> None:
        try:
            future.set_result(self._start_one(self._members[role]))
        except BaseException as error:  # whoever asks for the client gets it
            future.set_exception(error)

    def _start_one(self, member: Member) -> RoleClient:
        began = time.monotonic()
        transport = AppServerTransport(member.launch, WireLog(member.wire_log, self._redact))
        client = RoleClient(transport, member.thread, member.approvals, member.inherited)
        with self._lock:
            if self._stopping.is_set():
                raise CodexTimeout("the run is stopping")
            self._spawned.append(client)
        client.start(self._version, member.thread_id)
        seconds = time.monotonic() - began
        self._on_started(Started(member.role, client.pid, client.thread_id, round(seconds, 3), client.thread_resumed))
        return client

    def client(self, role: str) -> RoleClient:
        """The client of ``role`` (or ``role.2`` …), ready for a turn; a broken process is replaced on its thread.

        Raises what its start raised, or `CodexTimeout`. One caller a role at a time.
        """
        self._add(role)
        try:
            client = self._clients[role].result(READY_SECONDS)
        except FutureTimeoutError:
            raise CodexTimeout(f"Codex for {role} was not ready within {READY_SECONDS:g} s") from None
        return self._restart(role, client) if client.broken else client

    def _add(self, role: str) -> None:
        """Start a process that was not among the first ones: the second, third … of a role."""
        with self._lock:
            if role in self._clients or self._more is None:
                return
            self._members[role] = self._more(role)
            self._clients[role] = future = Future[RoleClient]()
        self._start_into(role, future)

    def _restart(self, role: str, broken: RoleClient) -> RoleClient:
        self._on_restart(role, broken.broken)
        broken.stop()
        self._members[role] = replace(self._members[role], thread_id=broken.thread_id)
        self._clients[role] = future = Future[RoleClient]()
        self._start_into(role, future)
        return future.result(0)

    def cancel(self) -> None:
        """Interrupt every running turn. Returns at once."""
        with self._lock:
            clients = list(self._spawned)
        for client in clients:
            client.cancel()

    def stop_soon(self) -> None:
        """Begin to end every process; `stop` waits for it. No turn may begin any more."""
        with self._lock:
            self._stopping.set()
            clients, self._spawned = self._spawned, []
        for client in clients:
            stopper = threading.Thread(target=client.stop, name="codex-stop")
            stopper.start()
            self._stoppers.append(stopper)

    def stop(self) -> None:
        """End every process, all at the same time, and wait for it. Idempotent."""
        self.stop_soon()
        for stopper in self._stoppers:
            stopper.join()
        self._pool.shutdown(wait=True)
