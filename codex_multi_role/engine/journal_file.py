"""The SQLite file of a run's journal, before DBOS opens it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote

from codex_multi_role.errors import StorageError, UsageError

SQLITE_PREFIX = "sqlite:///"
MIN_SQLITE = (3, 35)
"""The first version with RETURNING, which DBOS uses."""
UPGRADE = "Use a Python built with a newer SQLite, or record runs in Postgres with --database-url."


def sqlite_url(path: Path) -> str:
    """The database URL of a file, whatever characters its path contains."""
    return f"{SQLITE_PREFIX}{quote(str(path))}"


def sqlite_path(database_url: str) -> Path | None:
    """The file that the URL names, if any."""
    return Path(unquote(database_url.removeprefix(SQLITE_PREFIX))) if database_url.startswith(SQLITE_PREFIX) else None


def sqlite_problem() -> str:
    """Why Python's SQLite library cannot hold a journal; empty if it can."""
    if sqlite3.sqlite_version_info >= MIN_SQLITE:
        return ""
    return f"SQLite {sqlite3.sqlite_version} is too old: runs need {'.'.join(map(str, MIN_SQLITE))} or later"


def create_journal_file(database_url: str) -> None:
    """Create the file if the URL names one, in WAL mode, which it keeps.

    A recorded step then costs one disk flush, not four (1.0 ms, not 2.6). Raises `StorageError`, and `UsageError` if
    the SQLite library is too old.
    """
    path = sqlite_path(database_url)
    if path is None:
        return
    if problem := sqlite_problem():
        raise UsageError(problem, UPGRADE)
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise StorageError(f"the journal {database_url} cannot be opened: {error}") from error
