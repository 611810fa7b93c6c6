"""One connection to the database that machines share, and its failures in words."""

from __future__ import annotations

import fcntl
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from codex_multi_role.errors import CodexMultiRoleError, StorageError, UsageError
from codex_multi_role.extensions.machines.journal.database_url import check_database_url, with_timeouts
from codex_multi_role.extensions.machines.workers import database_tables
from codex_multi_role.host.atomic import storage_errors

Result = TypeVar("Result")
STATEMENT_SECONDS = 30
PATIENCE_SECONDS = 60.0
"""How long a run process repeats a statement while the database cannot be reached."""
PAUSE_SECONDS = 0.5
KEEPALIVE = {"tcp_keepalives_idle": 20, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 4}
"""Seconds: after a minute without an answer, the server ends a session and releases its locks.

That is more than the 45 s after which a worker without the database ends its run processes.
"""
LOCKS = dict.fromkeys(("statement_timeout", "idle_in_transaction_session_timeout"), STATEMENT_SECONDS * 1000)
"""Milliseconds: a process that is frozen in a transaction keeps the rows that it has locked no longer."""
SESSION = {**LOCKS, **KEEPALIVE}
OPTIONS = {
    "application_name": "codex-multi-role",
    "options": " ".join(f"-c {name}={value}" for name, value in SESSION.items()),
}
WITHOUT_SCHEMAS = {database_tables.SCHEMA: None, database_tables.ENGINE_SCHEMA: None}
"""SQLite has no schemas."""
SETUP_LOCK = 7_266_394
"""The advisory lock under which the tables are created, because several workers may start at once."""


class Database:
    """The tables of `tables` at one address. Threads may share it; it holds at most two connections."""

    def __init__(self, url: str) -> None:
        """Raises `UsageError` for an address that cannot be used."""
        check_database_url(url)
        self.url = url
        self.is_postgres = not url.startswith("sqlite:")
        self.engine = self._made_engine()

    def _made_engine(self) -> sa.Engine:
        if not self.is_postgres:
            from codex_multi_role.extensions.machines.journal.shared_sqlite import url_with_clock  # here: as below

            waits = {"timeout": STATEMENT_SECONDS}
            engine = sa.create_engine(url_with_clock(self.url), poolclass=sa.NullPool, connect_args=waits)
            return engine.execution_options(schema_translate_map=WITHOUT_SCHEMAS)
        pool = {"pool_size": 1, "max_overflow": 1, "pool_timeout": STATEMENT_SECONDS, "pool_pre_ping": True}
        return sa.create_engine(self._address, connect_args=OPTIONS, **pool)

    @property
    def _address(self) -> sa.URL:
        return sa.make_url(with_timeouts(self.url)).set(drivername="postgresql+psycopg")

    @classmethod
    def open(cls, url: str) -> Database:
        """The database at ``url``, with our tables created if it has none yet.

        Raises `UsageError` if it belongs to another version of this program, `StorageError` if it cannot be used.
        """
        database = cls(url)
        try:
            database._require_tables()
        except CodexMultiRoleError:
            database.close()
            raise
        return database

    def _require_tables(self) -> None:
        if self.setting("schema_version") is None:
            self._create()
        if (version := self.setting("schema_version")) != str(database_tables.SCHEMA_VERSION):
            message = f"the tables of {self} have version {version}, this program uses {database_tables.SCHEMA_VERSION}"
            raise UsageError(message, "Use the same version of codex-multi-role on all machines, or another database.")

    def __str__(self) -> str:
        return f"the database {self.url}"

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """One transaction. Raises `StorageError` if it did not take place."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self.failure(error) from error

    def lasting_connection(self) -> sa.Connection:
        """A connection of its own, in which each statement is a transaction. Raises `StorageError`."""
        engine = sa.create_engine(
            self._address, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=OPTIONS
        )
        try:
            return engine.connect()
        except SQLAlchemyError as error:
            raise self.failure(error) from error

    def insist(self, work: Callable[[sa.Connection], Result]) -> Result:
        """What ``work`` returns from one transaction, repeated like that of `patiently`."""

        def once() -> Result:
            with self.transaction() as connection:
                return work(connection)

        return self.patiently(once)

    def patiently(self, work: Callable[[], Result]) -> Result:
        """What ``work`` returns, repeated for `PATIENCE_SECONDS` if the database is unreachable.

        ``work`` must change nothing further if it is repeated after it took place. Raises `StorageError`.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return work()
            except DatabaseUnreachable:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE_SECONDS)

    def setting(self, name: str) -> str | None:
        """A row of `database_tables.settings`; None if it or the table is missing."""
        with self.transaction() as connection:
            if not sa.inspect(connection).has_table(
                "settings", schema=database_tables.SCHEMA if self.is_postgres else None
            ):
                return None
            found = sa.select(database_tables.settings.c.value).where(database_tables.settings.c.name == name)
            return connection.execute(found).scalar()

    def set_first(self, name: str, value: str) -> str:
        """Set a setting unless it is set; returns its value."""
        with self.transaction() as connection:
            connection.execute(self.insert_new(database_tables.settings, {"name": name, "value": value}))
        return self.setting(name) or value

    def insert_new(self, table: sa.Table, *rows: Mapping[str, object]) -> sa.Executable:
        """An insertion that leaves existing rows as they are."""
        from sqlalchemy.dialects import postgresql, sqlite

        insert = postgresql.insert if self.is_postgres else sqlite.insert
        return insert(table).values([dict(row) for row in rows]).on_conflict_do_nothing()

    def _create(self) -> None:
        from codex_multi_role.extensions.machines.journal.shared_journal import (
            create_journal,  # here: slow to import, and not needed to look
        )

        with self._alone():
            if self.setting("schema_version") is not None:
                return  # another process was faster
            create_journal(self.url)
            with self.transaction() as connection:
                if self.is_postgres:
                    connection.execute(sa.schema.CreateSchema(database_tables.SCHEMA, if_not_exists=True))
                database_tables.metadata.create_all(connection)
                version = {"name": "schema_version", "value": str(database_tables.SCHEMA_VERSION)}
                connection.execute(self.insert_new(database_tables.settings, version))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only process in this block, because several may be the first to open a database."""
        if not self.is_postgres:
            lock = Path(f"{self.engine.url.database}.lock")
            with storage_errors(lock), lock.open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # waits: for another process that creates the tables
                yield
            return
        with self.lasting_connection() as connection:
            end = time.monotonic() + PATIENCE_SECONDS
            # Not a statement that waits: the engine creates indexes concurrently, and that waits for all statements.
            while not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(SETUP_LOCK))):
                if time.monotonic() > end:
                    raise StorageError(f"the tables of {self} are being created by another process", "Try again later.")
                time.sleep(PAUSE_SECONDS)
            yield

    def failure(self, error: SQLAlchemyError) -> StorageError:
        """What the error means, as `transaction` raises it."""
        from codex_multi_role.engine.journal_slots import TRY_AGAIN  # as above
        from codex_multi_role.extensions.machines.journal.database_errors import database_error  # as above

        is_lost = isinstance(error, sa.exc.TimeoutError) or (isinstance(error, DBAPIError) and _is_unreachable(error))
        known = database_error(f"{self} cannot be {'reached' if is_lost else 'used'}", error, TRY_AGAIN)
        return DatabaseUnreachable(str(known), known.hint) if is_lost else known


class DatabaseUnreachable(StorageError):
    """There is no connection to the database, so the statement may be repeated."""


def _is_unreachable(error: DBAPIError) -> bool:
    """Whether the connection failed or broke, or the server is starting or stopping."""
    state = str(getattr(error.orig, "sqlstate", None) or "")
    broken = error.connection_invalidated or state.startswith(("08", "57P", "53300"))
    refused = re.search("password|not exist|no such table|parameters|no pg_hba.conf|certificate|SSL", str(error.orig))
    return broken or (isinstance(error, sa.exc.OperationalError) and not state and not refused)
