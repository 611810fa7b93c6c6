from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy

from codex_multi_role.cli.diagnosis import diagnose
from codex_multi_role.engine import sqlite_url
from codex_multi_role.engine.journal import open_journal
from codex_multi_role.engine.sqlite_clock import url_with_clock
from codex_multi_role.errors import UsageError


def test_milliseconds_are_known_to_every_sqlite(tmp_path: Path) -> None:
    """DBOS has this call in its column defaults on Python 3.12 and later; the library may be older than the call."""
    engine = sqlalchemy.create_engine(url_with_clock(sqlite_url(tmp_path / "journal.sqlite")))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
        connection.exec_driver_sql("INSERT INTO t (a) VALUES (1)")
        stamp = connection.exec_driver_sql("SELECT at FROM t").scalar_one()
    engine.dispose()
    assert abs(stamp / 1000 - time.time()) < 60


def test_other_databases_keep_their_url() -> None:
    assert url_with_clock("postgresql://host/runs") == "postgresql://host/runs"


def test_sqlite_without_returning_is_refused_and_diagnosed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.31.1")
    with (
        pytest.raises(UsageError, match=r"SQLite 3\.31\.1 is too old"),
        open_journal(sqlite_url(tmp_path / "j"), "run"),
    ):
        pass
    finding = next(each for each in diagnose(None, (), tmp_path, None, tmp_path) if each.name == "sqlite")
    assert not finding.ok
    assert "--database-url" in finding.advice
