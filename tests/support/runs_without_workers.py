"""Runs that workers execute, without a worker: rows of a database, and run folders in a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.extensions.machines.workers.submission import open_store
from codex_multi_role.run_folder import RunFolder
from tests.support.console import Completed, console
from tests.support.shared_runs import found


@dataclass
class RunsWithoutWorkers:
    """A database and a store in ``folder``, what a worker would do with them, and ``shared``: how others see it."""

    folder: Path

    def __post_init__(self) -> None:
        self.url = f"sqlite:///{self.folder}/queue.sqlite"
        self.database = Database.open(self.url)
        self.queued = QueuedRuns(self.database)
        self.store: Store = open_store(self.database, str(self.folder / "store"), "")
        self.shared = SharedRuns(self.database)

    def close(self) -> None:
        self.shared.queued.close()
        self.queued.close()
        self.database.close()

    def submit(self, run_id: str, **options: object) -> QueuedRun:
        options = {"goal": f"goal of {run_id}", **options}
        self.queued.submit([RunRequest(run_id=run_id, options=options, definitions={}, workspace={})])
        return self.row(run_id)

    def row(self, run_id: str) -> QueuedRun:
        return found(self.queued, run_id)

    def claim(self, run_id: str, worker: str = "anna", identity: str = "") -> QueuedRun:
        run = self.queued.claim(run_id, worker, identity or f"identity of {worker}")
        assert run is not None
        return run

    def save(self, run: QueuedRun, folder: RunFolder) -> None:
        """Save a folder of the run as the process of this attempt does."""
        manifest = RunSaver(self.store, folder, run.attempt, "").save()
        self.queued.save(run, manifest=manifest, record=folder.record())

    def share(self, folder: RunFolder, worker: str = "anna") -> QueuedRun:
        """Share the run as if a worker had executed it to its end, or until it was parked."""
        self.submit(folder.run_id)
        run = self.claim(folder.run_id, worker)
        self.save(run, folder)
        record = folder.record()
        state = RunState.PARKED if record["exit_code"] in (4, 5) else RunState.ENDED
        self.queued.save(run, state=state, exit_code=record["exit_code"], why=record["reason"])
        return self.row(folder.run_id)

    def command(self, *arguments: str, folder: Path | None = None) -> Completed:
        """Execute ``codex-multi-role`` as on another machine: with the address of the database, and nothing else."""
        (elsewhere := self.folder / "elsewhere").mkdir(exist_ok=True)
        return console(*arguments, folder=folder or elsewhere, variables={"CODEX_MULTI_ROLE_DATABASE_URL": self.url})


@pytest.fixture
def on_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunsWithoutWorkers]:
    """Shared runs, and a cache of this test's own for what is seen of them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runs = RunsWithoutWorkers(tmp_path)
    yield runs
    runs.close()
