"""Runs that workers execute, without a worker: rows of a database, and the folder of a real run in a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.store import RunSaver, Store
from codex_multi_role.workers.database import Database
from codex_multi_role.workers.queued_runs import QueuedRun, QueuedRuns, RunState
from codex_multi_role.workers.run_requests import RunRequest
from codex_multi_role.workers.submission import open_store


@dataclass
class RunsWithoutWorkers:
    """A database and a store in ``folder``, and what a worker would do with them."""

    folder: Path

    def __post_init__(self) -> None:
        self.database = Database.open(self.url)
        self.queued = QueuedRuns(self.database)
        self.store: Store = open_store(self.database, str(self.folder / "store"), "")

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/queue.sqlite"

    def submit(self, run_id: str, **options: object) -> QueuedRun:
        request = RunRequest(
            run_id=run_id, options={"goal": f"goal of {run_id}", **options}, definitions={}, workspace={}
        )
        self.queued.submit([request])
        return self.row(run_id)

    def row(self, run_id: str) -> QueuedRun:
        found = self.queued.find(run_id)
        assert found is not None
        return found

    def claim(self, run_id: str, worker: str = "anna") -> QueuedRun:
        run = self.queued.claim(run_id, worker, f"identity of {worker}")
        assert run is not None
        return run

    def save(self, run: QueuedRun, path: Path, tree: str = "") -> None:
        """Save ``path``, the folder of a run with the same ID, as the process of the attempt ``run`` does."""
        folder = RunFolder(path)
        manifest = RunSaver(self.store, folder, run.attempt, "").save(lambda: {"": tree} if tree else {})
        self.queued.save(run, manifest=manifest, record=folder.record())

    def end(self, run: QueuedRun, exit_code: int, why: str = "") -> None:
        state = RunState.PARKED if exit_code in (4, 5) else RunState.ENDED
        self.queued.save(run, state=state, exit_code=exit_code, why=why)

    def share(self, path: Path, worker: str = "anna") -> QueuedRun:
        """Share the run in the folder ``path`` as if a worker had executed it to its end."""
        folder = RunFolder(path)
        self.submit(folder.run_id)
        run = self.claim(folder.run_id, worker)
        self.save(run, path)
        self.end(run, folder.record()["exit_code"], folder.record()["reason"])
        return self.row(folder.run_id)
