"""What any worker does for all: takes the runs of dead workers, and enqueues parked ones whose reason is gone."""

from __future__ import annotations

import sqlalchemy as sa

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.workers.database import Database, DatabaseUnreachable
from codex_multi_role.extensions.machines.workers.database_tables import messages, runs, server_seconds, workers
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState

SETTLED_SECONDS = 10.0
"""What takes a moment and has not happened for so long will not happen, because its process was killed."""
AT_ONCE = 50


def keep_house(database: Database, queued: QueuedRuns) -> list[str]:
    """Do what is due; returns what was done, or why not, in words. Several workers may do it at the same time.

    A part that fails stops neither the others nor the worker. Raises `DatabaseUnreachable`.
    """
    lines = _bury_the_dead(database)
    for part in (_take_over, _resume_parked, _release_held, _complete_enqueuing, _find_lost):
        try:
            lines += part(queued)
        except DatabaseUnreachable:
            raise
        except StorageError as error:
            lines.append(f"{error}. {error.hint}")
    return lines


def _bury_the_dead(database: Database) -> list[str]:
    late = sa.delete(workers).where(workers.c.heartbeat_at + workers.c.dead_after < server_seconds())
    with database.transaction() as connection:
        names = connection.scalars(late.returning(workers.c.name)).all()
    return [f"worker {name} is dead: it has not reported for too long" for name in names]


def _take_over(queued: QueuedRuns) -> list[str]:
    alive = sa.select(workers.c.identity)
    orphans = queued.list(runs.c.state == RunState.RUNNING, runs.c.worker_identity.not_in(alive), limit=AT_ONCE)
    return [
        f"run {run.run_id} has lost its worker: {run.worker} is dead"
        for run in orphans
        if queued.enqueue_again(run, f"its worker {run.worker} died", crashed=True)
    ]


def _resume_parked(queued: QueuedRuns) -> list[str]:
    answered = sa.select(messages.c.run_id).where(messages.c.kind == "answer")
    is_due = (runs.c.resumes_at <= server_seconds(), runs.c.run_id.in_(answered))
    due = queued.list(runs.c.state == RunState.PARKED, sa.or_(*is_due), limit=AT_ONCE)
    return [
        f"run {run.run_id} is resumed: what it was parked for is over"
        for run in due
        if queued.enqueue_again(run, "what it was parked for is over")
    ]


def _release_held(queued: QueuedRuns) -> list[str]:
    """One run per look and batch: the next one sees what this one reserved, or whether its store can be written."""
    released: dict[str | None, str] = {}
    for run in queued.first_held(AT_ONCE):
        if run.batch not in released and queued.fits(run) and queued.enqueue_again(run, ""):
            released[run.batch] = f"run {run.run_id} is enqueued: it need not be held any longer"
    return list(released.values())


def _complete_enqueuing(queued: QueuedRuns) -> list[str]:
    is_settled = runs.c.changed_at < server_seconds() - SETTLED_SECONDS
    cut_short = queued.list(runs.c.state == RunState.WAITING, sa.not_(runs.c.enqueued), is_settled, limit=AT_ONCE)
    for run in cut_short:
        queued.tell_engine(run)
    return [f"run {run.run_id} is enqueued: the process that wanted to was killed" for run in cut_short]


def _find_lost(queued: QueuedRuns) -> list[str]:
    return [
        f"run {run.run_id} is enqueued again: the process that took it was killed"
        for run in queued.lost(SETTLED_SECONDS, AT_ONCE)
        if queued.enqueue_again(run, "")
    ]
