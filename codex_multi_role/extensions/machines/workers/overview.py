"""Who works on what, what waits, and why: the records of ``queues``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import runs, server_seconds, settings
from codex_multi_role.extensions.machines.workers.membership import KnownWorker, list_workers
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from codex_multi_role.extensions.machines.workers.run_requests import can_take
from codex_multi_role.reading.json_types import Json

LIMIT = "limit:"


def ended_limits(database: Database) -> list[str]:
    """The limits of providers and models that earlier versions set in the database; nothing reads them."""
    names = sa.select(settings.c.name).where(settings.c.name.startswith(LIMIT)).order_by(settings.c.name)
    with database.transaction() as connection:
        return [name.removeprefix(LIMIT) for name in connection.scalars(names)]


def worker_records(database: Database) -> list[Json]:
    """One record per worker, with the runs that it works on."""
    chosen = sa.select(runs.c.worker_identity, runs.c.run_id).where(runs.c.state == RunState.RUNNING)
    with database.transaction() as connection:
        working = defaultdict(list)
        for identity, run_id in connection.execute(chosen.order_by(runs.c.run_id)):
            working[identity].append(run_id)
    return [_worker_record(worker, working[worker.identity]) for worker in list_workers(database)]


def _worker_record(worker: KnownWorker, working: Sequence[str]) -> Json:
    return {
        "name": worker.name,
        "state": "dead" if worker.is_dead else "draining" if worker.is_draining else "alive",
        "runs": list(working),
        "concurrency": worker.concurrency,
        "queues": worker.queues,
        "labels": worker.labels,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "up_seconds": round(worker.up_seconds),
        "silent_seconds": round(worker.silent_seconds),
    }


def queue_records(database: Database) -> list[Json]:
    """One record per queue. ``oldest_seconds``: how long the run that has waited longest has waited."""
    waiting = runs.c.state == RunState.WAITING
    count = {state: sa.func.count().filter(runs.c.state == state) for state in RunState}
    oldest = sa.func.max(sa.case((waiting, server_seconds() - runs.c.changed_at)))
    columns = (*(count[state].label(state) for state in RunState), oldest.label("oldest"))
    rows = sa.select(runs.c.queue, *columns).group_by(runs.c.queue).order_by(runs.c.queue)
    with database.transaction() as connection:
        found = connection.execute(rows).mappings().all()
    known = list_workers(database)
    return [
        {
            "queue": row["queue"],
            **{str(state): row[state] for state in RunState},
            "oldest_seconds": round(row["oldest"] or 0),
            "why": why_waiting(row["queue"], known) if row[RunState.WAITING] else "",
        }
        for row in found
    ]


def why_waiting(queue: str, workers: Sequence[KnownWorker]) -> str:
    """Why runs in the queue have not been started yet."""
    able = [each for each in workers if not each.is_dead and can_take(queue, each.queues, each.labels)]
    if not workers:
        return "there are no workers"
    if not able:
        return "no worker takes runs of this queue with these labels"
    if all(each.is_draining for each in able):
        return "the workers for it are draining"
    return "the workers for it are busy, or about to start them"
