"""A SQLite file that several runs share, for DBOS.

On Python 3.12 and later, DBOS uses ``unixepoch('subsec')`` for milliseconds. SQLite before 3.42 returns NULL or lacks
the function, and no run could be recorded. Debian 12 and Ubuntu 22.04 have such a library. DBOS creates its own
connections, so they are reached through the dialect in its URL.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import DBAPIConnection

from codex_multi_role.errors import StorageError, UsageError

SQLITE_PREFIX = "sqlite:///"
MIN_SQLITE = (3, 35)
"""The first version with RETURNING, which DBOS uses."""
UPGRADE = "Use a Python built with a newer SQLite, or a Postgres database."
SUBSECOND_SQLITE = (3, 42)
"""The first version that knows ``unixepoch('subsec')``."""
SCHEME, SCHEME_WITH_CLOCK = "sqlite:", "sqlite+with_clock:"


class DialectWithClock(SQLiteDialect_pysqlite):
    """The standard dialect, with ``unixepoch('subsec')`` on every connection."""

    supports_statement_cache = True

    def on_connect(self) -> Callable[[DBAPIConnection], None]:
        standard = super().on_connect()

        def set_up(connection: DBAPIConnection) -> None:
            if standard is not None:
                standard(connection)
            # Journals written with a newer library, or by Python 3.12, have this call in their column defaults.
            connection.create_function("unixepoch", 1, lambda _: round(time.time(), 3))

        return set_up


registry.register("sqlite.with_clock", __name__, DialectWithClock.__name__)


def url_with_clock(database_url: str) -> str:
    """The URL for DBOS. Raises `UsageError` if the SQLite library is too old."""
    if not database_url.startswith(SCHEME):
        return database_url
    _require_returning()
    if sqlite3.sqlite_version_info >= SUBSECOND_SQLITE:
        return database_url
    return database_url.replace(SCHEME, SCHEME_WITH_CLOCK, 1)


def create_file(database_url: str) -> None:
    """Create the file if the URL names one, in WAL mode, which it keeps: a step then costs one disk flush, not four.

    Raises `StorageError`, and `UsageError` if the SQLite library is too old.
    """
    if not database_url.startswith(SQLITE_PREFIX):
        return
    _require_returning()
    path = Path(unquote(database_url.removeprefix(SQLITE_PREFIX)))
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise StorageError(f"the journal {database_url} cannot be opened: {error}") from error


def _require_returning() -> None:
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        least = ".".join(map(str, MIN_SQLITE))
        problem = f"SQLite {sqlite3.sqlite_version} is too old for a shared database: it needs {least} or later"
        raise UsageError(problem, UPGRADE)
