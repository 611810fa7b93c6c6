"""A database of the test's own: a file by default, a real Postgres in the long run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns
from tests.support.shared_runs import SharedRuns, left_of


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    in_file = f"sqlite:///{tmp_path}/queue.sqlite"
    opened = Database.open(in_file if request.param == "sqlite" else request.getfixturevalue("database_url"))
    yield opened
    opened.close()


@pytest.fixture
def queued(database: Database) -> Iterator[QueuedRuns]:
    runs = QueuedRuns(database)
    yield runs
    runs.close()


@pytest.fixture
def on_postgres(tmp_path: Path, database_url: str) -> Iterator[SharedRuns]:
    """Runs for real workers, none of which is left afterwards."""
    shared = SharedRuns(tmp_path, database_url)
    yield shared
    shared.close()
    assert left_of(tmp_path / "machines") == []
