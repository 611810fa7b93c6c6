"""Who is alive: one row per worker, kept fresh by its heartbeat, by the server's clock."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.journal.shared_journal import SHARED_VERSION
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import server_seconds, workers
from codex_multi_role.extensions.machines.workers.queued_runs import MAX_CRASHES
from codex_multi_role.version import __version__

DEAD_AFTER_SECONDS = 45.0
"""Default silence after which others take a worker's runs. A network cut of half a minute costs nothing then."""
BEATS = 9
"""How many heartbeats fit into that time."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker offers. ``name``: unique among the living. ``max_crashes``: as for `QueuedRuns`."""

    name: str
    queues: tuple[str, ...]
    labels: tuple[str, ...]
    concurrency: int
    dead_after_seconds: float = DEAD_AFTER_SECONDS
    max_crashes: int = MAX_CRASHES


@dataclass(frozen=True)
class KnownWorker:
    """A row of `tables.workers`; ``silent_seconds`` since its last heartbeat."""

    name: str
    identity: str
    host: str
    pid: int
    queues: list[str]
    labels: list[str]
    concurrency: int
    version: str
    is_draining: bool
    dead_after: float
    silent_seconds: float
    up_seconds: float

    @property
    def is_dead(self) -> bool:
        return self.silent_seconds > self.dead_after


class Membership:
    """One worker's row. ``identity`` is new for every start, so that a late process differs from its successor."""

    def __init__(self, database: Database, settings: WorkerSettings) -> None:
        self._database = database
        self.settings = settings
        self.identity = secrets.token_hex(8)

    def join(self) -> None:
        """Raises `UsageError` if a living worker has the name, `StorageError`."""
        with self._database.transaction() as connection:
            same_name = connection.execute(_selected().where(workers.c.name == self.settings.name)).mappings().first()
            if same_name and not (known := KnownWorker(**same_name)).is_dead:
                raise UsageError(
                    f'a worker named "{known.name}" is alive (process {known.pid} on {known.host})',
                    "Choose another --name. If that process was killed, its name is free after "
                    f"{known.dead_after - known.silent_seconds:.0f} s.",
                )
            # The runs of the dead one keep its identity, so that they are still found as its own.
            connection.execute(sa.delete(workers).where(workers.c.name == self.settings.name))
            connection.execute(sa.insert(workers).values(self._row()))

    def beat(self, *, is_draining: bool) -> bool:
        """Report being alive; False if others have declared this worker dead. Raises `StorageError`."""
        own = sa.update(workers).where(workers.c.identity == self.identity)
        with self._database.transaction() as connection:
            beaten = connection.execute(own.values(heartbeat_at=server_seconds(), is_draining=is_draining))
            return beaten.rowcount == 1

    def leave(self) -> None:
        with self._database.transaction() as connection:
            connection.execute(sa.delete(workers).where(workers.c.identity == self.identity))

    def _row(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "name": settings.name,
            "identity": self.identity,
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "queues": list(settings.queues),
            "labels": list(settings.labels),
            "concurrency": settings.concurrency,
            "version": __version__,
            "journal_version": SHARED_VERSION,
            "dead_after": settings.dead_after_seconds,
            "started_at": server_seconds(),
            "heartbeat_at": server_seconds(),
        }


def list_workers(database: Database) -> list[KnownWorker]:
    """All workers that have not left, the dead ones included until others have taken their runs."""
    with database.transaction() as connection:
        return [KnownWorker(**row) for row in connection.execute(_selected().order_by(workers.c.name)).mappings()]


def _selected() -> sa.Select[Any]:
    names = [name for name in KnownWorker.__dataclass_fields__ if not name.endswith("_seconds")]
    silent = (server_seconds() - workers.c.heartbeat_at).label("silent_seconds")
    up = (server_seconds() - workers.c.started_at).label("up_seconds")
    return sa.select(*(workers.c[name] for name in names), silent, up)
