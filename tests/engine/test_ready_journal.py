"""New journals are copies of one that DBOS has made, and DBOS makes its own if there is no such copy."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from codex_multi_role.engine.journal import create_journal
from codex_multi_role.engine.journal_file import create_journal_file, sqlite_url
from codex_multi_role.engine.ready_journal import fill_journal
from tests.support.teams import TeamFolder, say


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the ready journal is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/codex-multi-role/journals"


def created(path: Path) -> Path:
    create_journal_file(sqlite_url(path))
    return path


def names(path: Path) -> list[str]:
    """What is in the database."""
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]


def tables(path: Path) -> list[tuple[str, ...]]:
    """The statements that create what is in the database, and the version of DBOS's tables."""
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        return [*made, *connection.execute("SELECT version FROM dbos_migrations")]


def never(url: str) -> None:
    raise AssertionError(url)


def test_new_journal_has_the_tables_that_dbos_creates(tmp_path: Path, cache: Path) -> None:
    """The second one without a statement of DBOS."""
    first, second, its_own = (created(tmp_path / f"{name}.sqlite") for name in ("first", "second", "own"))
    fill_journal(first, create_journal)
    fill_journal(second, never)
    create_journal(sqlite_url(its_own))
    assert tables(first) == tables(second) == tables(its_own) != []
    assert cache.stat().st_mode & 0o777 == 0o700
    assert len(list(cache.iterdir())) == 1
    with closing(sqlite3.connect(second)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_journal_with_tables_is_left_alone(tmp_path: Path, cache: Path) -> None:
    fill_journal(created(tmp_path / "ready.sqlite"), create_journal)
    used = created(tmp_path / "used.sqlite")
    with closing(sqlite3.connect(used)) as connection:
        connection.execute("CREATE TABLE mine (value)")
    fill_journal(used, never)
    assert names(used) == ["mine"]


@pytest.mark.parametrize("harm", ["damaged", "writable"])
def test_ready_journal_that_cannot_be_trusted_is_not_used(tmp_path: Path, cache: Path, harm: str) -> None:
    """A run then works as without one."""
    fill_journal(created(tmp_path / "first.sqlite"), create_journal)
    (ready,) = cache.iterdir()
    if harm == "damaged":
        ready.write_bytes(ready.read_bytes()[:5000] + b"x" * 20_000)
    else:
        cache.chmod(0o777)
    fill_journal(new := created(tmp_path / "new.sqlite"), never)
    assert names(new) == []
    assert TeamFolder(tmp_path / "team", {"one": {}}, {"one": [say()]}).run().outcome == "cycles_used_up"


@pytest.mark.usefixtures("cache")
def test_run_works_without_a_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert TeamFolder(tmp_path / "team", {"one": {}}, {"one": [say()]}).run().outcome == "cycles_used_up"
