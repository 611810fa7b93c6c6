"""Which run a person means, one that workers execute or one of this machine, and what commands do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from codex_multi_role.errors import RunNotFound
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.run_folder import Question, Record, RunFolder
from codex_multi_role.run_folder.folder import LATEST


def find_folder(reference: str, runs_dir: Path, shared: SharedRuns | None) -> RunFolder:
    """The folder of the run that `find_shared` finds, or else of the one in ``runs_dir``; a shared one is a copy.

    Raises `RunNotFound`, `StorageError`.
    """
    found = find_shared(reference, runs_dir, shared)
    if shared is not None and found is not None:
        return shared.mirror(found)
    return find_here(reference, runs_dir, shared)


def find_shared(reference: str, runs_dir: Path, shared: SharedRuns | None) -> QueuedRun | None:
    """The run of the database that ``reference`` names, if it names one: it comes before a run in ``runs_dir``.

    The ``latest`` run is the newest of all. Raises `RunNotFound` if several have the prefix, `StorageError`.
    """
    found = None if shared is None else shared.find(reference)
    is_older = found is not None and reference == LATEST and found.submitted_at < _newest(runs_dir)
    return None if is_older else found


def find_here(reference: str, runs_dir: Path, shared: SharedRuns | None) -> RunFolder:
    """The run in ``runs_dir``. Raises `RunNotFound`, which also says that the database has no such run."""
    try:
        return RunFolder.find(runs_dir, reference)
    except RunNotFound as error:
        if shared is None:
            raise
        raise RunNotFound(f"{error}, and none in {shared.database}", error.hint) from error


def all_records(here: Records, shared: SharedRuns | None) -> list[RecordedRun]:
    """All runs, oldest first. Of those that workers execute, only the record is read. Raises `StorageError`."""
    if shared is None:
        return here.look()
    found = {run.folder.run_id: run for run in (*here.look(), *shared.look())}
    return sorted(found.values(), key=lambda run: (str(run.record.get("started_at", "")), run.folder.run_id))


def _newest(runs_dir: Path) -> float:
    """When the latest run in ``runs_dir`` started; 0 without one."""
    with suppress(RunNotFound, LookupError, ValueError):
        return datetime.fromisoformat(RunFolder.find(runs_dir, LATEST).record()["started_at"]).timestamp()
    return 0.0


@dataclass(frozen=True)
class RunOnWorkers:
    """A run that workers execute, as the database knew it when it was found: a `RemoteRun`.

    ``is_ending`` ends the wait for its end.
    """

    shared: SharedRuns
    run: QueuedRun
    is_ending: Callable[[], bool] = lambda: False

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def folder(self) -> RunFolder:
        return self.shared.mirror(self.shared.row(self.run_id))

    def follow(self) -> Iterator[Record]:
        return self.shared.follow(self.run_id)

    def answer(self, *, approved: bool, comment: str, question: str | None, values: Mapping[str, object]) -> Question:
        from codex_multi_role.extensions.machines.workers.deciding import (
            answer_shared,  # here: slow to import, and not needed to look
        )

        return answer_shared(
            self.shared, self.run, approved=approved, comment=comment, question=question, values=values
        )

    def cancel(self) -> None:
        from codex_multi_role.extensions.machines.workers.deciding import cancel_shared  # as above

        cancel_shared(self.shared, self.run, self.is_ending)

    def pause(self) -> bool:
        from codex_multi_role.extensions.machines.workers.deciding import pause_shared  # as above

        return pause_shared(self.shared, self.run)

    def cancel_task(self, task: str, comment: str) -> str:
        from codex_multi_role.extensions.machines.workers.deciding import cancel_shared_task  # as above

        return cancel_shared_task(self.shared, self.run, task, comment)

    def resume(self, changes: Mapping[str, Any]) -> None:
        from codex_multi_role.extensions.machines.workers.deciding import resume_shared  # as above

        resume_shared(self.shared, self.run, changes)


@dataclass(frozen=True)
class RunsOnWorkers:
    """The runs of a database: `RemoteRuns` for the commands, registered under ``codex_multi_role.runs``."""

    shared: SharedRuns

    @classmethod
    def open(cls, url: str) -> RunsOnWorkers | None:
        """None if the database is only used for journals. Raises `UsageError`, `StorageError`."""
        shared = SharedRuns.open(url)
        return None if shared is None else cls(shared)

    def __str__(self) -> str:
        return str(self.shared.database)

    def find(self, reference: str, runs_dir: Path) -> RunFolder | RunOnWorkers:
        found = find_shared(reference, runs_dir, self.shared)
        return find_here(reference, runs_dir, self.shared) if found is None else RunOnWorkers(self.shared, found)

    def look(self, here: Records) -> list[RecordedRun]:
        return all_records(here, self.shared)

    def close(self) -> None:
        self.shared.close()
