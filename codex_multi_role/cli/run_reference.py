"""Which run a command means: one in --runs-dir or, with --database-url, also one that workers execute.

A database is open until the command ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codex_multi_role.host.atomic import make_folder
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import SHARED

if TYPE_CHECKING:
    from codex_multi_role.workers.database import Database
    from codex_multi_role.workers.queued_runs import QueuedRun
    from codex_multi_role.workers.shared_runs import SharedRuns


def open_database(database_url: str | None, runs_dir: Path) -> Database:
    """The database at that address; without one, a file in ``runs_dir``. Raises `UsageError`, `StorageError`."""
    from codex_multi_role.workers.database import Database  # here: most commands need none

    database = Database.open(database_url or f"sqlite:///{make_folder(runs_dir.absolute()) / 'queue.sqlite'}")
    click.get_current_context().call_on_close(database.close)
    return database


def open_shared(database_url: str | None) -> SharedRuns | None:
    """The runs that workers execute; None without a database, or if that is only used for journals.

    Raises `UsageError`, `StorageError`.
    """
    if database_url is None:
        return None
    from codex_multi_role.workers.shared_runs import SharedRuns  # as above

    shared = SharedRuns.open(database_url)
    if shared is not None:
        click.get_current_context().call_on_close(shared.close)
    return shared


def find_run(reference: str, runs_dir: Path, database_url: str | None) -> RunFolder:
    """The run's folder; of a run that workers execute, a copy of what was saved last.

    Raises `RunNotFound`, `UsageError`, `StorageError`.
    """
    shared = open_shared(database_url)
    if shared is None:
        return RunFolder.find(runs_dir, reference)
    from codex_multi_role.workers.finding import find_folder

    return find_folder(reference, runs_dir, shared)


@dataclass(frozen=True)
class RunOnWorkers:
    """A run that workers execute, as the database knew it when it was found."""

    shared: SharedRuns
    run: QueuedRun

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def folder(self) -> RunFolder:
        """A copy of its folder, as it is saved now."""
        return self.shared.mirror(self.shared.row(self.run_id))


def waiting_in_words(record: Mapping[str, Any]) -> str:
    """Say why a run that is queued, by its ``run.json``, has not started yet."""
    shared = record[SHARED]
    return one_line(f"{record['run_id']} waits in the queue {shared['queue']}: {shared['why']}", 500)


def find_either(reference: str, runs_dir: Path, database_url: str | None) -> RunFolder | RunOnWorkers:
    """Like `find_run`, for commands that work on the two in different ways."""
    shared = open_shared(database_url)
    if shared is None:
        return RunFolder.find(runs_dir, reference)
    from codex_multi_role.workers.finding import find_here, find_shared

    found = find_shared(reference, runs_dir, shared)
    return find_here(reference, runs_dir, shared) if found is None else RunOnWorkers(shared, found)


def all_records(here: Records, shared: SharedRuns | None) -> list[RecordedRun]:
    """All runs, oldest first. Of those that workers execute, only the record is read."""
    if shared is None:
        return here.look()
    from codex_multi_role.workers.finding import all_records as all_of_both

    return all_of_both(here, shared)
