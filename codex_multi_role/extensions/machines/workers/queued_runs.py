"""The rows of runs in the shared database: submitted, claimed, saved, ended, enqueued again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from codex_multi_role.errors import ExitCode, RunBusy
from codex_multi_role.extensions.machines.journal.shared_journal import SHARED_VERSION
from codex_multi_role.extensions.machines.workers.batch_totals import what_exceeds
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import runs, server_seconds, workflows
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest, dequeue_order, row_values
from codex_multi_role.presentation.wording import plural
from codex_multi_role.reading.json_types import Json

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.journal.run_queue import RunQueues

ROWS_AT_ONCE = 200
ORDER = (runs.c.submitted_at, runs.c.line, runs.c.rank)
"""The order of submission."""
MAX_CRASHES = 5
"""Default number of processes and workers that may be lost before a run is given up."""


class RunState(StrEnum):
    """``held``: not in a queue because the batch's totals do not allow it now, or its store cannot be written."""

    WAITING = "waiting"
    HELD = "held"
    RUNNING = "running"
    PARKED = "parked"
    ENDED = "ended"


OVER = (RunState.ENDED, RunState.PARKED)
"""The run has no process, and none is about to start."""


@dataclass(frozen=True)
class QueuedRun:
    """A row of `tables.runs`. ``waiting_seconds``: since it was submitted or last changed, by the server's clock."""

    run_id: str
    batch: str | None
    line: int | None
    goal: str
    request: RunRequest
    queue: str
    priority: int
    rank: int
    state: RunState
    why: str
    attempt: int
    crashes: int
    worker: str | None
    worker_identity: str | None
    manifest: str | None
    record: Json | None
    exit_code: int | None
    resumes_at: float | None
    submitted_at: float
    changed_at: float


class AttemptOver(RunBusy):
    """Another process works on the run by now; what this one writes no longer counts."""


class QueuedRuns:
    """The runs of one database. ``max_crashes``: a run that has lost so many processes or workers is given up."""

    def __init__(self, database: Database, max_crashes: int = MAX_CRASHES) -> None:
        self._database = database
        self._max_crashes = max_crashes

    def close(self) -> None:
        if "_queues" in vars(self):
            self._queues.close()

    @cached_property
    def _queues(self) -> RunQueues:
        from codex_multi_role.extensions.machines.journal.run_queue import (
            RunQueues,  # here: slow to import, and not needed to look
        )

        return RunQueues(self._database.engine)

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """Enqueue new runs; one that is already known stays as it is. Raises `StorageError`.

        Fair between batches: the n-th run of each has the same rank, counted from what waits now. All get the same
        time, because a clock that is set back between two rows would change their order.
        """
        with self._database.transaction() as connection:
            floors = self._lowest_ranks(connection)
            now = float(connection.scalar(sa.select(server_seconds())) or 0)
        for start in range(0, len(requests), ROWS_AT_ONCE):
            part = requests[start : start + ROWS_AT_ONCE]
            same = sa.select(runs.c.run_id).where(runs.c.run_id.in_([each.run_id for each in part]))
            with self._database.transaction() as connection:
                known = set(connection.scalars(same))
                for number, request in enumerate(part, start):
                    if request.run_id not in known:
                        rank = floors.get(request.priority, 0) + number
                        self._submit(connection, request, {**row_values(request, rank), "submitted_at": now})

    def _submit(self, connection: sa.Connection, request: RunRequest, values: Mapping[str, Any]) -> None:
        state = {"state": RunState.WAITING, "enqueued": True, "changed_at": server_seconds()}
        connection.execute(sa.insert(runs).values({**values, **state}))
        order = dequeue_order(request.priority, values["rank"])
        self._queues.enqueue(connection, request.run_id, request.full_queue, order)

    @staticmethod
    def _lowest_ranks(connection: sa.Connection) -> Mapping[int, int]:
        """By priority, the rank of the run that is next."""
        lowest = sa.select(runs.c.priority, sa.func.min(runs.c.rank)).where(runs.c.state == RunState.WAITING)
        return dict(connection.execute(lowest.group_by(runs.c.priority)).all())

    def find(self, run_id: str) -> QueuedRun | None:
        with self._database.transaction() as connection:
            row = connection.execute(sa.select(runs).where(runs.c.run_id == run_id)).mappings().first()
        return _of_row(row) if row else None

    def list(self, *conditions: sa.ColumnElement[bool], limit: int = 100_000) -> list[QueuedRun]:
        """Those that meet the conditions, in the order of submission."""
        rows = sa.select(runs).where(*conditions).order_by(*ORDER).limit(limit)
        found = self._database.insist(lambda connection: connection.execute(rows).mappings().all())
        return [_of_row(row) for row in found]

    def waiting_by_queue(self) -> dict[str, int]:
        """How many runs that this program can read wait in each queue; the queue with the most urgent one first."""
        order = sa.func.min((50 - runs.c.priority) * 20_000_000 + runs.c.rank)
        can_read = sa.or_(runs.c.journal_version.is_(None), runs.c.journal_version == SHARED_VERSION)
        conditions = (runs.c.state == RunState.WAITING, runs.c.enqueued, can_read)
        counted = sa.select(runs.c.queue, sa.func.count()).where(*conditions)
        with self._database.transaction() as connection:
            return dict(connection.execute(counted.group_by(runs.c.queue).order_by(order)).all())

    def claim(self, run_id: str, worker: str, identity: str) -> QueuedRun | None:
        """Start the next attempt of a waiting run; None if it does not wait, or the totals of its batch hold it."""

        def work(connection: sa.Connection) -> None:
            waiting = sa.select(runs.c.batch, runs.c.request).where(runs.c.run_id == run_id)
            row = connection.execute(waiting.where(runs.c.state == RunState.WAITING).with_for_update()).first()
            if row is None:
                return
            held = what_exceeds(connection, run_id, row.batch, row.request["limits"])
            worked_on = {"worker": worker, "worker_identity": identity, "journal_version": SHARED_VERSION}
            started = {"attempt": runs.c.attempt + 1, **worked_on}
            values = {"state": RunState.HELD} if held else {"state": RunState.RUNNING, **started}
            own = sa.update(runs).where(runs.c.run_id == run_id)
            connection.execute(own.values(**values, why=held, changed_at=server_seconds()))

        self._database.insist(work)
        found = self.find(run_id)
        return found if found and found.state is RunState.RUNNING and found.worker_identity == identity else None

    def first_held(self, limit: int) -> Sequence[QueuedRun]:
        """The first held run of each batch that is due, and of each combination of limits in it.

        If there are more than ``limit``, a random part, so that no batch is left out for long.
        """
        is_due = sa.or_(runs.c.resumes_at.is_(None), runs.c.resumes_at <= server_seconds())
        alike = (runs.c.batch, sa.cast(runs.c.request["limits"], sa.Text))
        number = sa.func.row_number().over(partition_by=alike, order_by=ORDER).label("number")
        held = sa.select(runs.c.run_id, number).where(runs.c.state == RunState.HELD, is_due).subquery()
        first = sa.select(held.c.run_id).where(held.c.number == 1).order_by(sa.func.random()).limit(limit)
        return self.list(runs.c.run_id.in_(first))

    def fits(self, run: QueuedRun) -> bool:
        """Whether the totals of its batch allow a held run now."""
        with self._database.transaction() as connection:
            return not what_exceeds(connection, run.run_id, run.batch, run.request.limits)

    def save(self, run: QueuedRun, **values: Any) -> None:  # noqa: ANN401 - columns of the table
        """Update the row on behalf of its attempt. Raises `AttemptOver`, `StorageError`."""

        def work(connection: sa.Connection) -> int:
            own = (runs.c.run_id == run.run_id, runs.c.attempt == run.attempt, runs.c.state == RunState.RUNNING)
            changed = connection.execute(sa.update(runs).where(*own).values(**values, changed_at=server_seconds()))
            return changed.rowcount

        if not self._database.insist(work):
            message = f"run {run.run_id} has been taken over by another worker"
            raise AttemptOver(message, "What this process did since then is dropped.")

    def hold(self, run: QueuedRun, why: str, seconds: float) -> None:
        """Let the run of an attempt wait outside of the queues for so long. Raises `AttemptOver`, `StorageError`."""
        self.save(run, state=RunState.HELD, why=why, resumes_at=server_seconds() + seconds)

    def enqueue_again(self, run: QueuedRun, why: str, *, crashed: bool = False) -> bool:
        """Enqueue a run that ``run`` describes after its last recorded step; False if its row has changed since.

        A process that still works on it is fenced: the engine refuses its writes to the journal, and `save` its others.
        ``crashed``: its process or worker was lost. A run that had ended or was parked starts to count again.
        """
        crashes = 0 if run.state in OVER else run.crashes + crashed
        given_up = crashed and crashes >= self._max_crashes
        lost = f"given up: its process or worker was lost {plural(crashes, 'time')}, last on worker {run.worker}: {why}"
        values = {
            "state": RunState.ENDED if given_up else RunState.WAITING,
            "why": lost if given_up else why,
            "enqueued": given_up,
            "resumes_at": None,
            "exit_code": int(ExitCode.FAILED) if given_up else None,
            "changed_at": server_seconds(),
            "crashes": crashes,
        }
        changed = self._update(run, **values)
        if changed and not given_up:
            self.tell_engine(run)
        return changed

    def withdraw(self, run: QueuedRun, why: str, code: ExitCode = ExitCode.INTERRUPTED) -> bool:
        """End or park a run on which no process works; False if its row has changed since. It can be enqueued again."""
        state = RunState.PARKED if code.is_parked else RunState.ENDED
        values = {"state": state, "why": why, "resumes_at": None, "exit_code": int(code)}
        changed = self._update(run, **values, changed_at=server_seconds())
        if changed and run.state is RunState.WAITING:
            self._queues.cancel(run.run_id)
        return changed

    def change(self, run: QueuedRun, changes: Mapping[str, Any]) -> None:
        """Change options of a run on which no process works.

        One that was never saved is started again with them; any other is resumed with them.
        """
        request = run.request
        if run.manifest:
            request = replace(request, changes={**request.changes, **changes})
        else:
            request = replace(request, options={**request.options, **changes})
        self._update(run, request=request.as_json())

    def _update(self, run: QueuedRun, **values: Any) -> bool:  # noqa: ANN401 - columns of the table
        """Update the row unless it has changed since; returns whether it has not."""
        same = (runs.c.run_id == run.run_id, runs.c.attempt == run.attempt, runs.c.state == run.state)
        with self._database.transaction() as connection:
            return connection.execute(sa.update(runs).where(*same).values(values)).rowcount == 1

    def tell_engine(self, run: QueuedRun) -> None:
        """Complete `enqueue_again`, also one that was cut short between the row and the engine's queue."""
        self._queues.enqueue_again(run.run_id, run.queue)
        told = sa.update(runs).where(runs.c.run_id == run.run_id, runs.c.state == RunState.WAITING)
        with self._database.transaction() as connection:
            connection.execute(told.values(enqueued=True))

    def lost(self, seconds: float, limit: int) -> Sequence[QueuedRun]:
        """Waiting runs that a process took from the queue at least ``seconds`` ago, but was killed before `claim`.

        The database compares: every run that has ever ended is in DBOS's table.
        """
        is_old = workflows.c.started_at_epoch_ms <= (server_seconds() - seconds) * 1000
        taken = sa.select(workflows.c.workflow_uuid).where(workflows.c.status == "PENDING", is_old)
        return self.list(runs.c.state == RunState.WAITING, runs.c.enqueued, runs.c.run_id.in_(taken), limit=limit)


def _of_row(row: sa.RowMapping) -> QueuedRun:
    fields = {name: row[name] for name in QueuedRun.__dataclass_fields__}
    return QueuedRun(**{**fields, "request": RunRequest.of(row["request"]), "state": RunState(row["state"])})
