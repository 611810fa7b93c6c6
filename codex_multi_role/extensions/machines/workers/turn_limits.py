"""Limits on turns at the same time, per model provider and per model, over all workers of a database.

A turn holds one advisory lock per limit. Postgres releases it when the connection ends, however the process ended, so
nothing has to be cleaned up. Of a machine that has vanished it learns after a minute (`KEEPALIVE`), when its turns have
long been given up. Other databases have no such locks. A connection pooler must keep sessions together.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Event
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from codex_multi_role.errors import RunInterrupted, StorageError, UsageError
from codex_multi_role.extensions.machines.workers.database import Database, DatabaseUnreachable
from codex_multi_role.extensions.machines.workers.database_tables import settings
from codex_multi_role.reading.json_types import Json

PREFIX = "limit:"
KINDS = ("provider", "model")
POLL_SECONDS = 0.5
TRY_PLACES = sa.text(
    "SELECT place FROM unnest(CAST(:places AS integer[])) AS place WHERE pg_try_advisory_lock(:number, place) LIMIT 1"
)
"""Stops at the first place that it gets."""
UNLOCK = sa.text("SELECT pg_advisory_unlock(:number, :place)")


@dataclass(eq=False)
class HeldPlace:
    """A place of a limit that a turn of this process holds: an advisory lock with these two numbers."""

    number: int
    place: int


def set_limit(database: Database, name: str, most: int | None) -> None:
    """Set how many turns ``name`` (``provider:NAME`` or ``model:NAME``) may have at once; None removes the limit."""
    kind, _, rest = name.partition(":")
    if kind not in KINDS or not rest:
        raise UsageError(f'"{name}" cannot be limited', "Name provider:NAME or model:NAME.")
    if most is not None and most < 1:
        raise UsageError(f"{name} cannot be limited to {most}", "Give at least 1, or none to remove the limit.")
    if not database.is_postgres:
        raise UsageError("limits over all workers need Postgres", "On one machine, use --concurrency.")
    with database.transaction() as connection:
        connection.execute(sa.delete(settings).where(settings.c.name == PREFIX + name))
        if most is not None:
            connection.execute(sa.insert(settings).values(name=PREFIX + name, value=str(most)))


def read_limits(database: Database) -> dict[str, int]:
    """The limits by name."""
    chosen = sa.select(settings.c.name, settings.c.value).where(settings.c.name.startswith(PREFIX))
    rows = database.insist(lambda connection: connection.execute(chosen).all())
    return {name.removeprefix(PREFIX): int(most) for name, most in rows}


def limit_records(database: Database) -> list[Json]:
    """One record per limit, with the turns that hold a place of it now."""
    limits = read_limits(database)
    in_use = turns_in_use(database, limits) if limits else {}
    return [{"limit": name, "most": most, "in_use": in_use[name]} for name, most in sorted(limits.items())]


def turns_in_use(database: Database, names: Iterable[str]) -> dict[str, int]:
    """How many turns hold a place of each limit now."""
    held = sa.text(
        "SELECT classid::bigint, count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY classid"
    )
    with database.transaction() as connection:
        by_key: dict[int, int] = dict(connection.execute(held).all())
    return {name: int(by_key.get(_number(name) % 2**32, 0)) for name in names}


class TurnLimits:
    """The places that the turns of this process hold, on one connection. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._connection: sa.Connection | None = None
        self._held: list[HeldPlace] = []

    def close(self) -> None:
        """Close the connection, which frees all places. A turn that ends later releases nothing."""
        with self._lock, suppress(SQLAlchemyError):
            connection, self._connection, self._held = self._connection, None, []
            if connection is not None:
                connection.close()

    @contextmanager
    def permit(self, names: Iterable[str], stopping: Event) -> Iterator[None]:
        """Hold a place of every limit among ``names`` during the block, as soon as all are free.

        Raises `RunInterrupted` if ``stopping`` is set meanwhile, `StorageError`.
        """
        with ExitStack() as stack:
            if self._database.is_postgres:
                for name in sorted({*names}):  # all processes in the same order, so there is no deadlock
                    if (held := self._wait_for_place(name, stopping)) is not None:
                        stack.callback(self._release, held)
            yield

    def _wait_for_place(self, name: str, stopping: Event) -> HeldPlace | None:
        """The place; None if there is no limit of that name, or no longer."""
        while True:
            with suppress(DatabaseUnreachable):  # without the database, its worker ends this process in time
                most = read_limits(self._database).get(name)
                if most is None:
                    return None
                if (held := self._take(name, most)) is not None:
                    return held
            if stopping.wait(POLL_SECONDS):
                raise RunInterrupted

    def _take(self, name: str, most: int) -> HeldPlace | None:
        number = _number(name)
        with self._lock:
            own = {each.place for each in self._held if each.number == number}
            free = [place for place in range(most) if place not in own]  # a session gets its own locks again
            place = self._execute(TRY_PLACES, number=number, places=free) if free else None
            if place is None:
                return None
            self._held.append(HeldPlace(number, int(place)))
            return self._held[-1]

    def _release(self, held: HeldPlace) -> None:
        with self._lock, suppress(StorageError):  # without the connection, the lock is released anyway
            if held in self._held:
                self._held.remove(held)
                self._execute(UNLOCK, number=held.number, place=held.place)

    def _execute(self, statement: sa.TextClause, **values: object) -> Any:  # noqa: ANN401 - of any type
        """The one value that the statement returns. If the connection is lost, so are the places that others take."""
        connection = self._connection or self._connected()
        try:
            return connection.execute(statement, values).scalar()
        except SQLAlchemyError as error:
            self._connection = None
            with suppress(SQLAlchemyError):  # it must not keep its locks until it is collected as garbage
                connection.invalidate()
                connection.close()
            raise self._database.failure(error) from error

    def _connected(self) -> sa.Connection:
        """A new connection, on which the places of running turns are taken again as far as they are still free."""
        self._connection = self._database.lasting_connection()
        lost, self._held = self._held, []
        for held in lost:
            if self._execute(TRY_PLACES, number=held.number, places=[held.place]) is not None:
                self._held.append(held)
        return self._connection


def _number(name: str) -> int:
    """A signed 32-bit number for a limit."""
    return zlib.crc32(name.encode()) - 2**31
