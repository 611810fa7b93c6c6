"""A journal with DBOS's empty tables, which new journals are copies of.

DBOS creates its tables with a hundred statements, in 60 ms; in a run, Codex's processes start meanwhile, and it took
130 ms before the first turn could be recorded. The ready journal is made once per version of DBOS, by DBOS itself. If
anything goes wrong, DBOS creates the tables of each journal, as before.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path

from codex_multi_role.engine.journal_file import create_journal_file, sqlite_url
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.host.atomic import write_bytes
from codex_multi_role.host.user_cache import is_only_ours, make_user_cache, user_cache

TABLES = "SELECT count(*) FROM sqlite_master WHERE type = 'table'"


def fill_journal(path: Path, create_tables: Callable[[str], None]) -> None:
    """Replace ``path`` with a copy of the ready journal if it has no tables. Nobody may have opened it yet.

    ``create_tables`` creates those of a database URL.
    """
    with suppress(OSError, sqlite3.Error, CodexMultiRoleError):
        if _has_tables(path):
            return
        ready = user_cache("journals", os.environ) / f"dbos-{version('dbos')}.sqlite"
        if not ready.exists():
            _make(ready, create_tables)
        if is_only_ours(ready.parent) and _is_sound(ready):
            write_bytes(path, ready.read_bytes())


def _has_tables(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute(TABLES).fetchone()[0])


def _is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]


def _make(ready: Path, create_tables: Callable[[str], None]) -> None:
    make_user_cache(ready.parent)
    with tempfile.TemporaryDirectory(prefix="making-", dir=ready.parent) as folder:
        made = Path(folder) / ready.name
        create_journal_file(sqlite_url(made))
        create_tables(sqlite_url(made))
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        write_bytes(ready, made.read_bytes())
