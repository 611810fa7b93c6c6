"""Opening the shared database: by several at once, of another version, unreachable."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import settings


@pytest.mark.parametrize("system", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def test_first_users_create_the_tables_once(request: pytest.FixtureRequest, tmp_path: Path, system: str) -> None:
    in_file = f"sqlite:///{tmp_path}/queue.sqlite"
    url = in_file if system == "sqlite" else request.getfixturevalue("database_url")
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(Database.open, [url] * 4))
    assert {database.setting("schema_version") for database in opened} == {"1"}
    for database in opened:
        database.close()


def test_database_of_another_version_is_refused(database: Database) -> None:
    other = sa.update(settings).where(settings.c.name == "schema_version").values(value="0")
    with database.transaction() as connection:
        connection.execute(other)
    with pytest.raises(UsageError, match="have version 0, this program uses 1"):
        Database.open(database.url)


def test_database_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(
        StorageError, match=r"the database postgresql://tester@127\.0\.0\.1:1/postgres cannot be reached"
    ):
        Database.open("postgresql://tester@127.0.0.1:1/postgres")


@pytest.mark.long
def test_server_ends_transactions_that_idle(database_url: str) -> None:
    """Only here the server's setting is read: a frozen process does not keep rows locked."""
    database = Database.open(database_url)
    with database.transaction() as connection:
        assert connection.scalar(sa.text("SHOW idle_in_transaction_session_timeout")) == "30s"
    database.close()
