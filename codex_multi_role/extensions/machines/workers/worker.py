"""A worker: sees what waits, starts run processes, and keeps house for all. It executes nothing itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.housekeeping import keep_house
from codex_multi_role.extensions.machines.workers.membership import BEATS, Membership, WorkerSettings
from codex_multi_role.extensions.machines.workers.own_process import OwnProcess
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.run_requests import can_take
from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.host.own_python import own_module
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.reading.json_types import Json

DRAIN_SECONDS = 1800.0
"""How long the turns in progress may take after a worker began to drain; then they are interrupted."""
EMPTY_PAUSE_SECONDS = 5.0
"""How long a queue is left alone after a process got no run from it, although some seem to wait."""
LOOK_SECONDS = 0.5
"""How often a worker with free places looks for waiting runs."""
MAX_LOG_BYTES = 1_000_000

Report = Callable[[str], None]
"""Gets one line per thing that happened."""


@dataclass(frozen=True)
class WorkerFolders:
    """``work``: on this machine's disk, for the runs in progress. ``log``: of the run processes."""

    work: Path

    def create(self) -> None:
        """Only this user can look into what is created. Raises `StorageError`."""
        with storage_errors(self.work):
            self.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        exclude_from_path(self.work)

    @property
    def log(self) -> Path:
        return self.work / "worker.log"


class RunChild(OwnProcess):
    """One run process. ``queue``: the queue it takes its run from; ``run_id``: empty until it has one.

    ``result``: how the run ended, in words; empty until then.
    ``problem``: what it is waiting out, in words, or empty. They are as of the last `follow`.
    """

    def __init__(self, order: Json, log: Path) -> None:
        self.queue = str(order["queue"])
        self.run_id = self.result = self.problem = ""
        with storage_errors(log):
            make_folder(log.parent)
            if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
                os.truncate(log, 0)
        super().__init__(own_module("codex_multi_role.extensions.machines.workers.attempt_process"), order, log)

    def follow(self, lines: Iterable[bytes]) -> None:
        """Note what it has reported."""
        self.problem = ""
        for news in read_records(lines):
            self.run_id = news.get("run_id", self.run_id)
            self.result = news.get("result", self.result)
            self.problem = news.get("problem", self.problem)

    def drain(self) -> None:
        """Ask it to finish the turns in progress and give its run back; without a run, to end."""
        self.follow(self.lines())
        self.send(signal.SIGUSR1 if self.run_id else signal.SIGTERM)


class Worker:
    """Starts at most ``settings.concurrency`` run processes, until it drains or stops."""

    def __init__(
        self, database: Database, store: str, folders: WorkerFolders, settings: WorkerSettings, report: Report
    ) -> None:
        self._database = database
        self._queued = QueuedRuns(database, settings.max_crashes)
        self._store = store
        self._folders = folders
        self._settings = settings
        self._report = report
        self._membership = Membership(database, settings)
        self._children: list[RunChild] = []
        self._last_beat = 0.0
        self._failure: StorageError | None = None
        self._failing_since = 0.0
        self._in_vain = 0
        self._not_before: dict[str, float] = {}
        self.draining = Event()
        """Set it to start nothing further, finish the turns in progress, give the runs back, and leave."""
        self.hurried = Event()
        """Set it to interrupt the turns as well."""

    def work(self, *, until_empty: bool = False) -> None:
        """Work until `draining` is set, or, ``until_empty``, until nothing waits that this worker could take.

        Raises `UsageError` if a living worker has the name, and `StorageError` if the database cannot be used at first,
        or, ``until_empty``, for as long as others wait for a worker, and if it gets none of the runs that wait.
        """
        self._folders.create()
        self._membership.join()  # waits: for one transaction
        self._last_beat = time.monotonic()
        try:
            while not self.draining.is_set():  # waits: for runs, ended when it is asked to leave
                self._look((lambda: None) if until_empty and self._is_in_vain else self._fill)
                if until_empty and not self._children and not self._waits():
                    return
                self.draining.wait(LOOK_SECONDS)
            self._drain()
        finally:
            self._stop_children()
            self._leave()

    def _drain(self) -> None:
        """Let the turns in progress finish, at most for `DRAIN_SECONDS` and until `hurried` is set."""
        for child in self._children:
            child.drain()
        self._look(lambda: self._beat(now=True))  # the run processes finish their turns without the database, too
        end = time.monotonic() + DRAIN_SECONDS
        while self._children and time.monotonic() < end and not self.hurried.wait(LOOK_SECONDS):
            self._look(lambda: None)

    def _look(self, fill: Callable[[], None]) -> None:
        """One look. An unreachable database is not the end: the run processes continue for a while."""
        for child in self._children:
            child.follow(child.lines())
            if child.problem:
                self._report(f"run {child.run_id}: {child.problem}")
        ended = [child for child in self._children if child.exit_code is not None]
        self._children = [child for child in self._children if child not in ended]
        for child in ended:
            self._conclude(child)
        try:
            self._beat()
            fill()
            self._failure = None
        except StorageError as error:
            if self._failure is None:
                self._report(f"{error}. {error.hint}")
                self._failing_since = time.monotonic()
            self._failure = error
            if time.monotonic() - self._last_beat > self._settings.dead_after_seconds:
                self._give_up_runs("the database has been unreachable for too long, and others may take the runs")

    def _beat(self, *, now: bool = False) -> None:
        pause = self._settings.dead_after_seconds / BEATS
        if not now and self._failure is None and time.monotonic() - self._last_beat < pause:
            return
        if not self._membership.beat(is_draining=self.draining.is_set()):
            self._give_up_runs("others have declared this worker dead")
            self._membership = Membership(self._database, self._settings)
            self._membership.join()  # waits: for one transaction
        self._last_beat = time.monotonic()
        for line in keep_house(self._database, self._queued):
            self._report(line)

    def _fill(self) -> None:
        """Start run processes for what waits, the most urgent queue first."""
        free = self._settings.concurrency - len(self._children)
        for queue, count in self._takeable().items() if free > 0 else ():
            if time.monotonic() < self._not_before.get(queue, 0.0):
                continue
            arriving = sum(child.queue == queue and not child.run_id for child in self._children)
            for _ in range(min(free, count - arriving)):
                self._children.append(RunChild(self._order(queue), self._folders.log))
                free -= 1

    def _takeable(self) -> dict[str, int]:
        offers = self._settings.queues, self._settings.labels
        return {queue: n for queue, n in self._queued.waiting_by_queue().items() if can_take(queue, *offers)}

    def _waits(self) -> bool:
        """Whether it is worth staying. Raises `StorageError` if nothing has come of that for too long."""
        if self._failure is not None:
            if time.monotonic() - self._failing_since > self._settings.dead_after_seconds:
                raise self._failure
            return True
        if self._is_in_vain:
            hint = f"See {self._folders.log}."
            raise StorageError(f"{self._in_vain} run processes in a row ended without any of the runs that wait", hint)
        try:
            return bool(self._takeable())
        except StorageError:  # the next look fails as well
            return True

    @property
    def _is_in_vain(self) -> bool:
        return self._in_vain >= self._settings.max_crashes

    def _order(self, queue: str) -> Json:
        return {
            "database_url": self._database.url,
            "store": self._store,
            "queue": queue,
            "worker": self._settings.name,
            "identity": self._membership.identity,
            "folder": str(self._folders.work),
            "max_crashes": self._settings.max_crashes,
        }

    def _conclude(self, child: RunChild) -> None:
        child.follow(child.close())
        self._in_vain = 0 if child.run_id else self._in_vain + 1
        if child.result:
            self._report(f"run {child.run_id}: {child.result}")
        elif child.run_id:
            self._report(
                f"run {child.run_id}: its process ended with exit code {child.exit_code}; see {self._folders.log}"
            )
            self._give_back(child.run_id)
        else:
            self._not_before[child.queue] = time.monotonic() + EMPTY_PAUSE_SECONDS
            if child.exit_code:
                self._report(
                    f"a run process ended with exit code {child.exit_code} before it had a run; see {self._folders.log}"
                )

    def _give_back(self, run_id: str) -> None:
        """Enqueue the run of a process that crashed."""
        try:
            run = self._queued.find(run_id)
            if run and run.state is RunState.RUNNING and run.worker_identity == self._membership.identity:
                self._queued.enqueue_again(run, "its process crashed", crashed=True)
        except StorageError as error:
            self._report(f"{error}. Others take the run once this worker is gone.")

    def _give_up_runs(self, reason: str) -> None:
        if self._children:
            self._report(f"{len(self._children)} run processes are ended: {reason}")
        for child in self._children:
            child.send(signal.SIGKILL)  # its guard ends what it started
        for child in self._children:
            child.close()
        self._children = []

    def _stop_children(self) -> None:
        for child in self._children:
            child.stop()
        for child in self._children:
            self._conclude(child)

    def _leave(self) -> None:
        try:
            self._membership.leave()
        except StorageError as error:
            self._report(f"{error}. This worker counts as dead soon.")
        self._queued.close()
