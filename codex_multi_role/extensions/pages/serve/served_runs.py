"""The runs that the pages show, and what can be done about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import codex_multi_role.lifecycle.running as running
from codex_multi_role.extensions.pages.serve.starting import RunStarter
from codex_multi_role.lifecycle.stopping import pause_run, stop_run
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.run_folder import Question, RunFolder
from codex_multi_role.run_folder.folder import RUN_ID
from codex_multi_role.run_folder.owner import is_alive


class ServedRuns:
    """The runs in one folder. Threads may share it."""

    has_workers = False
    """Whether there are also runs that workers execute."""

    def __init__(self, runs_dir: Path, starter: RunStarter, is_ending: Callable[[], bool]) -> None:
        self.runs_dir = runs_dir
        self._starter = starter
        self._is_ending = is_ending
        self._records = Records(runs_dir)

    def look(self) -> list[RecordedRun]:
        """All runs, oldest first. Raises `StorageError`."""
        return self._records.look()

    def folder(self, run_id: str) -> RunFolder | None:
        """The folder of the run with exactly this ID; None if not found. Raises `StorageError`."""
        folder = RunFolder(self.runs_dir / run_id)
        known = RUN_ID.fullmatch(run_id) and folder.record_path.is_file() and not folder.path.is_symlink()
        return folder if known else None

    def run_id_of(self, reference: str) -> str:
        """The ID of the run that ``reference`` names. Raises `RunNotFound`, `StorageError`."""
        return RunFolder.find(self.runs_dir, reference).run_id

    def refresh(self, folder: RunFolder) -> str:
        """Bring the folder up to date if it is a copy; returns what keeps it from being so, or nothing."""
        return ""

    def complete_report(self, folder: RunFolder) -> None:
        """Write the run's report if it has one that is not in the folder. Raises `StorageError`."""

    def answer(
        self, folder: RunFolder, *, approved: bool, comment: str, question: str, values: Mapping[str, object]
    ) -> Question:
        """Answer a question of the run. Raises `UsageError`, `StorageError`."""
        return running.answer(
            folder.run_id,
            runs_dir=folder.path.parent,
            approved=approved,
            comment=comment,
            question=question,
            values=values,
        )

    def go_on(self, folder: RunFolder) -> None:
        """Resume a run that was answered, unless it does so by itself. Raises what `RunStarter.start` raises."""
        if not is_alive(folder):
            self._starter.resume(folder)

    def fork(self, folder: RunFolder, point: str) -> str:
        """Start a new run from a visit of a step; returns its id. Raises what `RunStarter.start` raises."""
        return self._starter.fork(folder, point)

    def cancel_task(self, folder: RunFolder, task: str, comment: str) -> None:
        """Cancel a task of the run. Raises `UsageError`, `StorageError`."""
        running.cancel_task(folder.run_id, task, runs_dir=folder.path.parent, comment=comment)

    def stop(self, folder: RunFolder) -> None:
        """Stop the run, and wait until it has stopped. Raises `UsageError`, `StorageError`."""
        stop_run(folder, self._is_ending)

    def pause(self, folder: RunFolder) -> None:
        """Let the run park once the turns at work have ended. Raises `UsageError`, `StorageError`."""
        pause_run(folder)

    def resume(self, folder: RunFolder, limits: Mapping[str, str]) -> None:
        """Resume the run, with other ``limits``, by option. Raises what `RunStarter.start` raises."""
        self._starter.resume(folder, limits)
