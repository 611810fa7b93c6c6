"""What a worker leaves on its machine, in the store and in the database is private."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.shared_runs import SharedRuns
from tests.support.teams import NEVER, WRITER, TeamFolder, say


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Iterator[SharedRuns]:
    shared = SharedRuns(tmp_path, database_url)
    yield shared
    shared.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def require_private(shared: SharedRuns, worker: str) -> None:
    own = shared.folder / "machines" / worker / "workers" / worker
    assert mode(own) == mode(own / "runs/first") == 0o700
    stored = list((shared.folder / "store").rglob("*"))
    assert {mode(path) for path in stored if path.is_dir()} == {0o700}
    assert {mode(path) for path in stored if path.is_file()} == {0o600}


@pytest.mark.long
def test_folders_of_workers_and_store_are_private(tmp_path: Path, shared: SharedRuns) -> None:
    """Only here the modes of a worker's own folders are read, also where a run is continued."""
    team = TeamFolder(tmp_path / "team", {"one": WRITER, "two": {}}, {"one": [say()], "two": [NEVER] * 2})
    shared.submit(team.options(), "first")
    for worker in "ab":
        shared.start(worker)
        run_folder = tmp_path / "machines" / worker / "workers" / worker / "runs/first"
        shared.wait(lambda: list(run_folder.glob("two/turn_*")))  # noqa: B023 - called in this round
        require_private(shared, worker)
        shared.kill(worker)
