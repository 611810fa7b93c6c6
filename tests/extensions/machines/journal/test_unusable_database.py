"""A Postgres database that cannot be used: the message names the problem and the address, the hint what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, make_url

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.journal.journal_client import SharedJournals
from codex_multi_role.run_folder import RunFolder
from tests.support.databases import PASSWORD, DatabaseServer, execute, new_database, running_server
from tests.support.relays import certificate_for, relayed

RUN = RunFolder(Path("run"))
WEAK = "weak"
"""A user without rights."""
FEW = 8
OLD = 20
"""How many of DBOS's migrations an older version had."""
VERSION = "SELECT version FROM dbos.dbos_migrations"


@pytest.fixture(scope="module")
def server() -> Iterator[DatabaseServer]:
    with running_server(max_connections=str(FEW), superuser_reserved_connections="0", max_wal_senders="0") as server:
        execute(server.url, f"CREATE ROLE {WEAK} LOGIN PASSWORD '{PASSWORD}'")
        yield server


@dataclass(frozen=True)
class Case:
    """``url`` is filled in with the server's and the relay's port, and with files of certificates."""

    url: str
    problem: str
    hint: str
    password: str = PASSWORD
    of_fork: tuple[str, str] | None = None
    """Problem and hint where they differ because a fork reads what a run would create."""


OWN = "postgresql://tester@127.0.0.1:{port}"
TLS = "postgresql://tester@localhost:{tls_port}/postgres?sslmode=verify-full"
CASES = {
    "not running": Case("postgresql://tester@127.0.0.1:1/postgres", "Connection refused", "that the server runs"),
    "no socket": Case("postgresql://tester@/postgres?host=/nowhere", "No such file", "that the server runs"),
    "unknown host": Case("postgresql://tester@db.invalid/runs", "resolve host 'db.invalid'", "that the server runs"),
    "wrong password": Case(f"{OWN}/postgres", "password authentication failed", "PGPASSWORD", "not-this-one"),
    "no database": Case(OWN.replace("tester", WEAK) + "/none", '"none" does not exist', "Create the database"),
    "no rights": Case(
        OWN.replace("tester", WEAK) + "/postgres",
        "permission denied for database",
        "GRANT CREATE",
        of_fork=('relation "dbos.workflow_status" does not exist', "contains no journal"),
    ),
    "unknown TLS mode": Case(f"{OWN}/postgres?sslmode=full", 'invalid sslmode value: "full"', "`sslmode`"),
    "no TLS": Case(f"{OWN}/postgres?sslmode=require", "does not support SSL", "`sslmode`"),
    "wrong authority": Case(TLS + "&sslrootcert={other}", "certificate verify failed", "`sslrootcert`"),
    "no authority": Case(TLS + "&sslrootcert=/nowhere", 'certificate file "/nowhere" does not', "`sslrootcert`"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_problem_is_reported_with_its_remedy(
    name: str, server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, other = CASES[name], tmp_path / "other.pem"
    monkeypatch.setenv("PGPASSWORD", case.password)
    certificate_for("localhost", other)
    certificate = certificate_for("localhost", tmp_path / "own.pem")
    with relayed(("127.0.0.1", server.port), certificate) as relay:
        url = case.url.format(port=server.port, tls_port=relay.port, other=other)
        as_run = (case.problem, case.hint)
        for expected, (message, hint) in (
            (as_run, problem_of_run(url)),
            (case.of_fork or as_run, problem_of_fork(url)),
        ):
            assert url in message
            assert expected[0] in message
            assert expected[1] in hint
            assert case.password not in message + hint
            assert "\n" not in message


@pytest.mark.long
def test_tls_with_the_right_authority_is_used(
    server: DatabaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    certificate = certificate_for("localhost", tmp_path / "own.pem")
    with relayed(("127.0.0.1", server.port), certificate) as relay:
        journal = SharedJournals(f"{TLS.format(tls_port=relay.port)}&sslrootcert={tmp_path}/own.pem").open(
            RUN, print, bool
        )
        with journal:
            pass


@pytest.mark.long
def test_read_only_server_is_reported(server: DatabaseServer) -> None:
    with new_database(server.url) as url:
        message, hint = problem_of_run(f"{url}&options=-c%20default_transaction_read_only%3Don")
    assert "read-only" in message
    assert "primary" in hint


@pytest.mark.long
def test_schema_of_an_older_version_is_migrated(server: DatabaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """A newer codex-multi-role may work in the same database."""
    with new_database(server.url) as url:
        with SharedJournals(url).open(RUN, print, bool):
            ((latest,),) = execute(url, VERSION)
        execute(url, f"UPDATE dbos.dbos_migrations SET version = {latest + 1}")
        with SharedJournals(url).open(RUN, print, bool):
            assert execute(url, VERSION) == [(latest + 1,)]


def problem_of_run(url: str) -> tuple[str, str]:
    with pytest.raises(StorageError) as caught, SharedJournals(url).open(RUN, print, bool):
        pass
    return str(caught.value), caught.value.hint


def problem_of_fork(url: str) -> tuple[str, str]:
    with pytest.raises(StorageError) as caught:
        SharedJournals(url).steps(RUN)
    return str(caught.value), caught.value.hint


@pytest.mark.long
def test_connection_limit_is_reported(server: DatabaseServer) -> None:
    """Last, because the server takes its time to see that connections are closed."""
    with ExitStack() as stack:
        for _ in range(FEW):
            stack.enter_context(psycopg.connect(server.url))
        message, hint = problem_of_run(server.url)
    assert "too many clients" in message
    assert "max_connections" in hint
