"""A database that cannot be used: `worker`, `batch` and `run` say why, start nothing and repeat no password.

`run` uses the journal, which is in the same database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.queued_runs import RunState
from tests.support.batches import OF_TEAM, one_role, results, started, write_goals
from tests.support.console import Completed, console
from tests.support.databases import PASSWORD, DatabaseServer, execute, new_database, running_server
from tests.support.relays import certificate_for, relayed
from tests.support.shared_runs import SharedRuns
from tests.support.teams import TeamFolder, read

WEAK, READER = "weak", "reader"
"""Users who may not create a schema; the second one reads tables of others."""
COMMANDS = {
    "worker": ("worker", "--until-empty", "--name", "a"),
    "batch": ("batch", "goals.jsonl", *OF_TEAM),
    "run": ("run", "--goal", "reach it", *OF_TEAM),
}


@pytest.fixture(scope="module")
def server() -> Iterator[DatabaseServer]:
    with running_server() as server:
        for name in (WEAK, READER):
            execute(server.url, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        yield server


@dataclass(frozen=True)
class Refusal:
    """``url`` is filled in with the ports of the server and of a relay with TLS, and with files of certificates."""

    url: str
    problem: str
    hint: str
    password: str = PASSWORD


OWN = "postgresql://tester@127.0.0.1:{port}"
TLS = "postgresql://tester@localhost:{tls_port}/postgres?sslmode=verify-full&sslrootcert="
REFUSALS = {
    "no server": Refusal("postgresql://tester@127.0.0.1:1/postgres", "Connection refused", "that the server runs"),
    "no socket": Refusal("postgresql://tester@/postgres?host=/nowhere", "No such file", "that the server runs"),
    "unknown host": Refusal("postgresql://tester@db.invalid/runs", "resolve host 'db.invalid'", "that the server runs"),
    "no database": Refusal(OWN.replace("tester", WEAK) + "/none", '"none" does not exist', "Create the database"),
    "wrong password": Refusal(f"{OWN}/postgres", "password authentication failed", "PGPASSWORD", "not-this-one"),
    "no rights": Refusal(OWN.replace("tester", WEAK) + "/postgres", "permission denied for database", "GRANT CREATE"),
    "read-only": Refusal(
        OWN + "/postgres?options=-c%20default_transaction_read_only%3Don", "read-only transaction", "primary"
    ),
    "unknown TLS mode": Refusal(f"{OWN}/postgres?sslmode=full", 'invalid sslmode value: "full"', "`sslmode`"),
    "no authority": Refusal(TLS + "/nowhere", 'certificate file "/nowhere" does not', "`sslrootcert`"),
    "no TLS": Refusal(f"{OWN}/postgres?sslmode=require", "does not support SSL", "`sslmode`"),
    "wrong authority": Refusal(TLS + "{other}", "certificate verify failed", "`sslrootcert`"),
    "wrong host": Refusal(TLS.replace("localhost", "127.0.0.1") + "{own}", "does not match host", "`sslmode`"),
}


def command(team: TeamFolder, name: str, url: str) -> Completed:
    return console(*COMMANDS[name], "--database-url", url, folder=team.folder)


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    team = one_role(tmp_path / "team")
    write_goals(team, {"goal": "first"})
    return team


@pytest.mark.long
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", COMMANDS)
def test_unusable_database_is_refused_with_its_remedy(
    name: str, refusal: str, team: TeamFolder, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here a real server refuses: what it says, and what each command makes of that."""
    case, other, own = REFUSALS[refusal], team.folder / "other.pem", team.folder / "own.pem"
    monkeypatch.setenv("PGPASSWORD", case.password)
    certificate_for("localhost", other)
    with relayed(("127.0.0.1", server.port), certificate_for("localhost", own)) as relay:
        url = case.url.format(port=server.port, tls_port=relay.port, other=other, own=own)
        refused = command(team, name, url)
    assert refused.returncode == ExitCode.FAILED, refused.stderr
    for expected in (url, case.problem, case.hint):
        assert expected in refused.stderr
    assert case.password not in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not list(team.folder.rglob("turn_*"))


@pytest.mark.long
@pytest.mark.parametrize("name", ["worker", "batch"])
def test_tables_of_another_user_need_rights(
    name: str, team: TeamFolder, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here the tables belong to another user of a real server."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with new_database(server.url) as url:
        Database.open(url).close()
        execute(url, f"GRANT USAGE ON SCHEMA codex_multi_role TO {READER}")
        execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA codex_multi_role TO {READER}")
        path = sa.make_url(url).database
        for user, denied in ((WEAK, "for schema codex_multi_role"), (READER, "for table")):
            refused = command(team, name, f"postgresql://{user}@127.0.0.1:{server.port}/{path}")
            assert refused.returncode == ExitCode.FAILED, refused.stderr
            assert f"permission denied {denied}" in refused.stderr
            assert "`codex_multi_role`" in refused.stderr.partition("hint: ")[2]


@pytest.mark.long
def test_all_commands_use_tls_with_a_verified_server(
    tmp_path: Path, team: TeamFolder, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here TLS is required of every connection, those of the run processes included."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    certificate = certificate_for("localhost", own := tmp_path / "own.pem")
    with new_database(server.url) as direct, relayed(("127.0.0.1", server.port), certificate) as relay:
        path = sa.make_url(direct).database
        url = f"postgresql://tester@localhost:{relay.port}/{path}?sslmode=verify-full&sslrootcert={own}"
        shared = SharedRuns(tmp_path, url)
        shared.start("a")
        with started(team, "--database-url", url) as submitting:
            said = submitting.communicate(timeout=240)[1]
        assert submitting.returncode == ExitCode.GOAL_REACHED, said
        assert {each["exit_code"] for each in results(team).values()} == {ExitCode.GOAL_REACHED}
        shared.wait_for(RunState.ENDED, "goals-1")
        alone = command(team, "run", url)
        assert alone.returncode == ExitCode.GOAL_REACHED, alone.stderr
        assert read(team.runs / "latest/run.json")["status"] == "succeeded"
        shared.close()
