"""Which run a person means: one that workers execute, or one in a folder of this machine."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from codex_multi_role.errors import RunNotFound
from codex_multi_role.presentation.recorded import RecordedRun, Records
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import LATEST
from codex_multi_role.workers.queued_runs import QueuedRun
from codex_multi_role.workers.shared_runs import SharedRuns


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
