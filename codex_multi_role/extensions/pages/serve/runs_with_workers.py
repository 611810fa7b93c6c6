"""The runs in a folder and those that workers of a database execute, whose folders are copies; the workers' page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.finding import RunOnWorkers, all_records, find_folder
from codex_multi_role.extensions.machines.workers.overview import queue_records, worker_records
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.extensions.pages.report.page import write_report
from codex_multi_role.extensions.pages.serve.forms import page
from codex_multi_role.extensions.pages.serve.listing import ServedRuns
from codex_multi_role.extensions.pages.serve.starting import RunStarter
from codex_multi_role.presentation.recorded import RecordedRun
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RUN_ID


class RunsWithWorkers(ServedRuns):
    """Threads may share it."""

    has_workers = True

    def __init__(self, runs_dir: Path, starter: RunStarter, is_ending: Callable[[], bool], shared: SharedRuns) -> None:
        super().__init__(runs_dir, starter, is_ending)
        self._shared = shared

    def look(self) -> list[RecordedRun]:
        return all_records(self._records, self._shared)

    def folder(self, run_id: str) -> RunFolder | None:
        run = self._shared.queued.find(run_id) if RUN_ID.fullmatch(run_id) else None
        if run is None:
            return super().folder(run_id)
        folder = self._shared.mirrors.folder_of(run_id)
        return folder if folder.record_path.is_file() else self._shared.mirror(run)

    def run_id_of(self, reference: str) -> str:
        return find_folder(reference, self.runs_dir, self._shared).run_id

    def refresh(self, folder: RunFolder) -> str:
        try:
            if run := self.elsewhere(folder):
                run.folder()
        except (StorageError, UsageError) as error:
            return f"Not up to date: {error}"
        return ""

    def complete_report(self, folder: RunFolder) -> None:
        if self.elsewhere(folder) and not folder.report_path.exists():
            write_report(folder)

    def elsewhere(self, folder: RunFolder) -> RunOnWorkers | None:
        if folder.path != self._shared.mirrors.folder_of(folder.run_id).path:
            return None
        return RunOnWorkers(self._shared, self._shared.row(folder.run_id), self._is_ending)


def worker_page(database: Database, request: Request) -> Response:
    """The page ``/workers``: who works on what, what waits, and why. Raises `StorageError`."""
    workers, queues = worker_records(database), queue_records(database)
    return page("workers.html", workers=workers, queues=queues, has_workers=True)
