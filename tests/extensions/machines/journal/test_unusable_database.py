"""A Postgres database of another version of DBOS, or without a free connection.

`../workers/test_refused_database.py` has what keeps commands from using one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, make_url

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.journal.journal_client import SharedJournals
from codex_multi_role.run_folder import RunFolder
from tests.support.databases import DatabaseServer, execute, new_database, running_server

RUN = RunFolder(Path("run"))
FEW = 8
OLD = 20
"""How many of DBOS's migrations an older version had."""
VERSION = "SELECT version FROM dbos.dbos_migrations"


@pytest.fixture(scope="module")
def server() -> Iterator[DatabaseServer]:
    with running_server(max_connections=str(FEW), superuser_reserved_connections="0", max_wal_senders="0") as server:
        yield server


@pytest.mark.long
def test_schema_of_an_older_version_is_migrated(server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only here the tables are those of an earlier DBOS."""
    from dbos import _migration  # imported here: `dbos_library` must be the first to import DBOS

    complete = _migration.get_dbos_migrations
    with new_database(server.url) as url, monkeypatch.context() as older:
        older.setattr(_migration, "get_dbos_migrations", lambda *given: complete(*given)[:OLD])
        engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
        _migration.ensure_dbos_schema(engine, "dbos")
        _migration.run_dbos_migrations(engine, "dbos", True)
        engine.dispose()
        assert execute(url, VERSION) == [(OLD,)]
        older.undo()
        with SharedJournals(url).open(RUN, print, bool):
            assert execute(url, VERSION) == [(len(complete("dbos", True, False)),)]


@pytest.mark.long
def test_schema_of_a_newer_version_is_used_as_it_is(server: DatabaseServer) -> None:
    """Only here a newer codex-multi-role worked in the same database."""
    with new_database(server.url) as url:
        with SharedJournals(url).open(RUN, print, bool):
            ((latest,),) = execute(url, VERSION)
        execute(url, f"UPDATE dbos.dbos_migrations SET version = {latest + 1}")
        with SharedJournals(url).open(RUN, print, bool):
            assert execute(url, VERSION) == [(latest + 1,)]


@pytest.mark.long
def test_connection_limit_is_reported(server: DatabaseServer) -> None:
    """Only here no connection is free. Last, because the server takes its time to see that some are closed."""
    with ExitStack() as stack:
        for _ in range(FEW):
            stack.enter_context(psycopg.connect(server.url))
        with pytest.raises(StorageError, match="too many clients") as caught:
            stack.enter_context(SharedJournals(server.url).open(RUN, print, bool))
    assert "max_connections" in caught.value.hint
