from __future__ import annotations

import base64
import os
import pickle
import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy

from codex_multi_role import run
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.journal.dbos_library import DBOSClient
from codex_multi_role.extensions.machines.journal.journal_client import SharedJournals
from codex_multi_role.extensions.machines.journal.shared_sqlite import url_with_clock
from codex_multi_role.run_folder import RunFolder
from tests.support.console import console
from tests.support.teams import Record, TeamFolder, say

RUN = RunFolder(Path("run"))


def test_milliseconds_are_known_to_every_sqlite(tmp_path: Path) -> None:
    """DBOS has this call in its column defaults on Python 3.12 and later; the library may be older than the call."""
    engine = sqlalchemy.create_engine(url_with_clock(f"sqlite:///{tmp_path}/runs.sqlite"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
        connection.exec_driver_sql("INSERT INTO t (a) VALUES (1)")
        stamp = connection.exec_driver_sql("SELECT at FROM t").scalar_one()
    engine.dispose()
    assert abs(stamp / 1000 - time.time()) < 60


def test_other_databases_keep_their_url() -> None:
    assert url_with_clock("postgresql://host/runs") == "postgresql://host/runs"


def test_shared_sqlite_without_returning_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.31.1")
    with (
        pytest.raises(UsageError, match=r"SQLite 3\.31\.1 is too old"),
        SharedJournals(f"sqlite:///{tmp_path}/runs.sqlite").open(RUN, print, bool),
    ):
        pass


def two_roles(folder: Path) -> TeamFolder:
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2, 3)] for name in ("one", "two")}
    return TeamFolder(folder, {"one": {}, "two": {}}, plays)


@pytest.mark.long
def test_run_cancelled_in_database_fails_and_can_be_resumed(tmp_path: Path) -> None:
    """Only here a run loses its row in the engine's tables while it works."""
    team, url = two_roles(tmp_path), f"sqlite:///{tmp_path}/runs.sqlite"

    def cancel(event: Record) -> None:
        if event["type"] == "turn_started" and event["role"] == "two":
            (folder,) = team.runs.glob("2*")
            client = DBOSClient(system_database_url=url_with_clock(url))
            client.cancel_workflow(folder.name)
            client.destroy()

    report = run(team.options(database_url=url), on_event=cancel)
    assert (report.outcome, report.exit_code) == ("storage_failed", 3), report
    assert "is cancelled" in report.reason
    assert team.resume().outcome == "cycles_used_up"


class Evil:
    """What its pickle does when it is read."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.ran),)


@pytest.mark.long
@pytest.mark.extensions
@pytest.mark.parametrize(
    ("table", "label"),
    [("operation_outputs", None), ("workflow_status", "py_pickle"), ("another version", "py_pickle")],
)
@pytest.mark.parametrize("is_postgres", [False, True])
def test_pickled_rows_are_refused_and_run_nothing(
    tmp_path: Path, label: str | None, table: str, is_postgres: bool, request: pytest.FixtureRequest
) -> None:
    """Only here somebody writes to the database what would be executed when it is read."""
    team, ran = two_roles(tmp_path), tmp_path / "ran"
    url = request.getfixturevalue("database_url") if is_postgres else f"sqlite:///{tmp_path}/runs.sqlite"
    report = run(team.options(database_url=url, cycles=2))
    evil = base64.b64encode(pickle.dumps(Evil(ran))).decode()
    prefix = "dbos." if is_postgres else ""
    engine = sqlalchemy.create_engine(url_with_clock(url).replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as journal:

        def change(table: str, **values: str | None) -> None:
            columns = ", ".join(f"{name} = :{name}" for name in values)
            journal.execute(sqlalchemy.text(f"UPDATE {prefix}{table} SET {columns}"), values)

        if table == "operation_outputs":
            change("operation_outputs", output=evil, serialization=label)
        else:
            change("workflow_status", inputs=evil, serialization=label)
            change("workflow_input", inputs=evil)
        if table == "another version":
            change("workflow_status", application_version="2")
    engine.dispose()
    words = "version 2" if table == "another version" else "is not JSON"
    for command in (
        ("rerun", report.run_id, "--dry-run"),
        ("fork", report.run_id, "--from", "team:2"),
        ("resume", report.run_id, "--cycles", "3"),
        *((name, report.run_id) for name in ("show", "report", "diff")),
    ):
        done = console(*command, "--runs-dir", str(team.runs), folder=tmp_path)
        assert not ran.exists(), command
        if command[0] in ("fork", "resume"):
            assert (done.returncode, words in done.stderr) == (3, True), (command, done.stdout, done.stderr)
            assert "use the version of codex-multi-role that `run.json` names" in done.stderr.replace("Use", "use")
