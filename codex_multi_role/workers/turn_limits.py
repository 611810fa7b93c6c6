"""Limits on turns at the same time, per model provider and per model, over all workers of a database.

A turn holds one advisory lock per limit. Postgres releases it when the connection ends, however the process ended, so
nothing has to be cleaned up. Other databases have no such locks.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from codex_multi_role.errors import RunInterrupted, StorageError, UsageError
from codex_multi_role.workers.database import Database, DatabaseUnreachable
from codex_multi_role.workers.tables import settings

PREFIX = "limit:"
KINDS = ("provider", "model")
POLL_SECONDS = 0.5
Key = tuple[int, int]
"""Of an advisory lock: which limit, and which of its places."""


def set_limit(database: Database, name: str, most: int | None) -> None:
    """Set how many turns ``name`` (``provider:NAME`` or ``model:NAME``) may have at once; None removes the limit."""
    kind, _, rest = name.partition(":")
    if kind not in KINDS or not rest:
        raise UsageError(f'"{name}" cannot be limited', "Name provider:NAME or model:NAME.")
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
    """The places that the turns of this process hold, on one connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._connection: sa.Connection | None = None
        self._held: set[Key] = set()

    @contextmanager
    def permit(self, names: Iterable[str], stopping: Event) -> Iterator[None]:
        """Hold a place of every limit among ``names`` during the block, as soon as all are free.

        Raises `RunInterrupted` if ``stopping`` is set meanwhile, `StorageError`.
        """
        limits = read_limits(self._database) if self._database.is_postgres else {}
        with ExitStack() as stack:
            for name in sorted({*names} & {*limits}):  # all processes in the same order, so there is no deadlock
                stack.callback(self._release, self._wait_for_place(name, limits[name], stopping))
            yield

    def _wait_for_place(self, name: str, most: int, stopping: Event) -> Key:
        while True:
            with suppress(DatabaseUnreachable):  # without the database, its worker ends this process in time
                if (key := self._take(name, most)) is not None:
                    return key
            if stopping.wait(POLL_SECONDS):
                raise RunInterrupted

    def _take(self, name: str, most: int) -> Key | None:
        with self._lock:
            for place in range(most):
                key = (_number(name), place)  # a connection that has a lock would get it again
                if key not in self._held and self._execute(sa.func.pg_try_advisory_lock(*key)):
                    self._held.add(key)
                    return key
        return None

    def _release(self, key: Key) -> None:
        with self._lock, suppress(StorageError):  # without the connection, the lock is released anyway
            if key in self._held:
                self._held.discard(key)
                self._execute(sa.func.pg_advisory_unlock(*key))

    def _execute(self, function: sa.Function[bool]) -> bool:
        if self._connection is None:
            self._connection = self._database.lasting_connection()
        try:
            return bool(self._connection.execute(sa.select(function)).scalar())
        except SQLAlchemyError as error:
            self._connection = None
            self._held.clear()  # the server has released them with the connection
            raise self._database.failure(error) from error


def _number(name: str) -> int:
    """A signed 32-bit number for a limit."""
    return zlib.crc32(name.encode()) - 2**31
