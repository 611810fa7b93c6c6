"""Queues of runs in the database that machines share: a run is a workflow that waits under its own ID."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event

import sqlalchemy as sa

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.journal_slots import TRY_AGAIN
from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.journal.database_errors import database_error
from codex_multi_role.extensions.machines.journal.dbos_library import (
    DBOS,
    JSON_ROWS,
    DBOSBaseException,
    DBOSClient,
)
from codex_multi_role.extensions.machines.journal.outages import Outages
from codex_multi_role.extensions.machines.journal.shared_journal import (
    APPLICATION,
    FLOW_WORKFLOW,
    listening,
    silence_library,
    work_and_halt,
)

POLL_SECONDS = 0.5
"""How often a process that waits for a run looks into its queue."""
MIN_PRIORITY, MAX_PRIORITY = 1, 2**31 - 1
"""The lowest number is dequeued first."""


class RunQueues:
    """Puts runs into queues. ``engine``: of the shared database, whose journal tables exist.

    Every method raises `StorageError` if the database cannot be used, except that `enqueue` leaves it to the caller.
    """

    def __init__(self, engine: sa.Engine) -> None:
        silence_library()
        self._name = f"the queues in {engine.url.render_as_string(hide_password=True)}"
        self._client = DBOSClient(
            system_database_engine=engine, application_name=APPLICATION, lazy=True, serializer=JSON_ROWS
        )

    def enqueue(self, connection: sa.Connection, run_id: str, queue_name: str, priority: int) -> None:
        """Enqueue a new run, within the caller's transaction."""
        options = {
            "workflow_name": FLOW_WORKFLOW,
            "queue_name": queue_name,
            "workflow_id": run_id,
            "priority": min(max(priority, MIN_PRIORITY), MAX_PRIORITY),
        }
        self._client.enqueue_in_transaction(connection, options, run_id)  # type: ignore[arg-type]  # a TypedDict

    def enqueue_again(self, run_id: str, queue_name: str) -> None:
        """Take the run from the process that works on it, if one does, and enqueue it after its last recorded step.

        From then on, DBOS refuses every write of that process to the journal.
        """
        with self._words():
            self._client.resume_workflow(run_id, queue_name=queue_name)

    def cancel(self, run_id: str) -> None:
        """Take a waiting run out of its queue; `enqueue_again` puts it back."""
        with self._words():
            self._client.cancel_workflow(run_id)

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Raise `StorageError` for any failure, such as a row that a frozen process has locked for too long."""
        try:
            yield
        except (Exception, DBOSBaseException) as error:
            raise database_error(f"{self._name} cannot be used", error, TRY_AGAIN) from error

    def close(self) -> None:
        self._client.destroy()


class QueuedJournal:
    """The journal of a process that works on one run from a queue.

    The run's workflow never returns in this process, because DBOS would then give it the next run.
    """

    def __init__(self, database_url: str, queue_name: str) -> None:
        self._url, self._queue_name = database_url, queue_name
        self._arrived: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._parts: Future[DurableRun] = Future()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Listen to the queue during the block. Raises `StorageError` if the database cannot be used."""
        outages = Outages(f"the journal {self._url}", lambda _: None, lambda: False)
        with listening(self._url, self._queue_name, self._work, outages):
            DBOS.register_queue(self._queue_name, worker_concurrency=1, polling_interval_sec=POLL_SECONDS)
            yield

    def next_run(self, seconds: float) -> str | None:
        """The run that DBOS gives this process; None if none arrives within ``seconds``."""
        try:
            return self._arrived.get(timeout=seconds)
        except queue.Empty:
            return None

    def begin(self, durable: DurableRun) -> None:
        """Start the run's workflow, or resume it after its last recorded step, with these live parts."""
        if self._parts.done():
            raise StorageError("the run has already been started in this process")
        self._parts.set_result(durable)

    def _work(self, run_id: str) -> None:
        self._arrived.put(run_id)
        try:
            work_and_halt(self._parts.result())  # waits: for the parts, ended by them or by the process
        finally:
            Event().wait()  # waits: for the process, which ends itself (workers/attempt_process.py)
