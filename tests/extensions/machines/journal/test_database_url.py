"""Database URLs, also as an option of a run: what is refused before it starts, and the deadlines that are added."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codex_multi_role import RunOptions
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.journal.database_url import check_database_url, with_timeouts
from codex_multi_role.extensions.machines.journal.dbos_library import DBOS
from codex_multi_role.extensions.machines.run_options import MachineOptions
from tests.support.batches import OF_TEAM, one_role
from tests.support.console import console
from tests.support.teams import read


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://me:hush@db/runs", "contains a password"),
        ("postgresql://me@db/runs?password=hush", "contains a password"),
        ("postgresql://me@db/runs?sslpassword=hush", "contains a password"),
        ("mysql://me@db/runs", 'of the kind "mysql"'),
        ("postgresql+asyncpg://me@db/runs", r'of the kind "postgresql\+asyncpg"'),
        ("host=db password=hush", "has no scheme"),
        ("postgresql://me@db", "names no database"),
        ("postgresql://me@db:/", "names no database"),
        ("postgresql://me@db:port/runs", "invalid database URL: Port"),
        ("postgresql://me@db/runs?sslmod=require", 'invalid database URL: .*"sslmod"'),
    ],
)
def test_unusable_url_is_refused_without_its_password(url: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        check_database_url(url)
    assert refused.value.hint
    assert "hush" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db:5432/runs",
        "postgres:///runs?host=/run/sockets",
        "postgresql+psycopg://db/runs",
        "sqlite:////a/b",
    ],
)
def test_usable_url_is_accepted(url: str) -> None:
    check_database_url(url)


def test_timeouts_are_added_unless_the_url_has_them() -> None:
    plain = "connect_timeout=10&keepalives_idle=30&keepalives_interval=10&keepalives_count=3&tcp_user_timeout=30000"
    assert with_timeouts("postgres:///runs") == f"postgres:///runs?{plain}"
    own = "postgresql://db/runs?host=/a%20b&connect_timeout=2&tcp_user_timeout=1"
    assert with_timeouts(own) == f"{own}&keepalives_idle=30&keepalives_interval=10&keepalives_count=3"
    assert with_timeouts("sqlite:///a") == "sqlite:///a"


URL = "postgresql://runs@db/runs?sslmode=require"


def test_run_remembers_the_address() -> None:
    options = RunOptions(goal="g", workspace=Path("/w"), runs_dir=Path("/r"), added=[MachineOptions(database_url=URL)])
    record = json.loads(json.dumps(options.as_record()))
    assert record["database_url"] == URL
    assert RunOptions.from_record(record) == options == replace(options, goal="g")
    assert options == replace(options.changed(cycles=1), cycles=3)


def test_run_without_one_records_nothing_of_it() -> None:
    assert "database_url" not in RunOptions().as_record()


def test_wrong_address_is_refused() -> None:
    with pytest.raises(UsageError, match="the database URL has no scheme"):
        RunOptions(added=[MachineOptions(database_url="here")])
    with pytest.raises(UsageError, match='did you mean "database_url"'):
        RunOptions(databse_url=URL)  # type: ignore[call-arg]


@pytest.mark.usefixtures("scripted_codex")
def test_run_stores_its_journal_there(tmp_path: Path) -> None:
    team = one_role(tmp_path)
    url = f"sqlite:///{tmp_path}/runs.sqlite"
    done = console("run", "--goal", "reach it", *OF_TEAM, "--database-url", url, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read(team.runs / "latest/run.json")["options"]["database_url"] == url
    assert not (team.runs / "latest/journal.sqlite").exists()
    assert console("resume", "--cycles", "2", folder=tmp_path).returncode == 0


def test_dbos_is_imported_without_its_library_for_times() -> None:
    """That one asks a program about this Python when it is imported, without a deadline: the run would wait for it."""
    modules = (
        sys.modules[f"{DBOS.__module__.partition('.')[0]}.{name}"] for name in ("_client", "_dbos", "_scheduler")
    )
    assert [vars(module)["croniter"] for module in modules] == [None] * 3
