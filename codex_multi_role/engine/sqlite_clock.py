"""SQLite before 3.42 for DBOS, which uses ``unixepoch('subsec')`` for milliseconds on Python 3.12 and later.

Older libraries return NULL or lack the function, and no run can be recorded. Debian 12 and Ubuntu 22.04 have such a
library. DBOS creates its own connections, so they are reached through the dialect in its URL.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import DBAPIConnection

from codex_multi_role.engine.journal_file import UPGRADE, sqlite_problem
from codex_multi_role.errors import UsageError

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
    """The URL for DBOS. Raises `UsageError` if the SQLite library is too old for a journal in a file."""
    if not database_url.startswith(SCHEME):
        return database_url
    if problem := sqlite_problem():
        raise UsageError(problem, UPGRADE)
    if sqlite3.sqlite_version_info >= SUBSECOND_SQLITE:
        return database_url
    return database_url.replace(SCHEME, SCHEME_WITH_CLOCK, 1)
