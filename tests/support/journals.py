"""New journals as copies of one: DBOS's migrations take a quarter of the CPU time that a short run costs us itself.

The first journal of a test process is migrated as in any run, and so is every journal that is not new. Processes of
their own migrate theirs.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

MIGRATED_EACH = "each-migrated"
"""The folder of journals that are not copied, because others read them meanwhile: a copy is not a transaction."""


@pytest.fixture(scope="session", autouse=True)
def migrated_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have DBOS migrate one empty SQLite database, and copy it over every other one."""
    if "tests.support.teams" not in sys.modules:
        yield
        return
    from dbos._sys_db_sqlite import SQLiteSystemDatabase  # imported here: it takes longer than most files of tests

    kept = tmp_path_factory.mktemp("journals") / "migrated.sqlite"
    migrate = SQLiteSystemDatabase.run_migrations

    def copy_or_migrate(system_database: SQLiteSystemDatabase) -> None:
        path = Path(str(system_database.engine.url.database))
        if path.parent.name == MIGRATED_EACH or not _is_empty(path):
            migrate(system_database)
        elif kept.exists():
            shutil.copyfile(kept, path)
        else:
            migrate(system_database)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copyfile(path, kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteSystemDatabase, "run_migrations", copy_or_migrate)
        yield


def _is_empty(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        return not connection.execute("SELECT * FROM sqlite_master").fetchall()
