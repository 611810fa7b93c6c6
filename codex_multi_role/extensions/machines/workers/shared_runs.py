"""The runs that workers execute, as any machine sees them: found by reference, listed, and copied when looked at."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TextIO

import sqlalchemy as sa

from codex_multi_role.errors import RunNotFound, RunStatus
from codex_multi_role.extensions.machines.journal.database_url import place_of
from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import runs
from codex_multi_role.extensions.machines.workers.membership import KnownWorker, list_workers
from codex_multi_role.extensions.machines.workers.messages import answered_runs, carry_out_early
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, QueuedRuns
from codex_multi_role.extensions.machines.workers.shared_record import shared_record
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.host.atomic import storage_errors, wait_for_lock, write_json
from codex_multi_role.host.user_cache import user_folder
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.recorded import RecordedRun
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Record, RunFolder, totals_of
from codex_multi_role.run_folder.folder import LATEST, SHARED, command_line

LOCK_SECONDS = 60.0
PAUSE_SECONDS = 0.05


def mirrors_folder() -> Path:
    """In the user's cache: all of it can be made again."""
    return user_folder("CACHE", "runs", os.environ)


class Mirrors:
    """The copies in ``folder``. ``open_store`` is called when the first saved state is read."""

    def __init__(self, folder: Path, open_store: Callable[[], Store]) -> None:
        self._folder = folder
        self._open_store = open_store

    def folder_of(self, run_id: str) -> RunFolder:
        """The copy, which may not exist yet."""
        return RunFolder(self._folder / run_id)

    def refresh(self, manifest: str | None, record: Json, complete: Callable[[RunFolder], None]) -> RunFolder:
        """Make the copy what ``manifest`` saved, with ``record`` as its ``run.json``; what is equal is not read again.

        ``complete`` adds to the copy what is not saved yet. Raises `StorageError`.
        """
        folder = self.folder_of(record["run_id"])
        with self._locked(folder) as restored:
            if manifest and _content(restored) != manifest:
                _replace(restored, "")  # a restore that is cut short is repeated
                restore_run(self._open_store(), manifest, folder.path)
                _replace(restored, manifest)
            complete(folder)
            worker = record[SHARED]["worker"]
            write_json(folder.owner_path, {"worker": worker} if worker else {})
            write_json(folder.record_path, record | {"totals": _totals(folder, record)})
        return folder

    def forget(self, run_id: str) -> None:
        """Have the next `refresh` compare every file with the saved state. Raises `StorageError`."""
        with self._locked(self.folder_of(run_id)) as restored:
            _replace(restored, "")

    @contextmanager
    def _locked(self, folder: RunFolder) -> Iterator[TextIO]:
        """Keep other processes from the copy; gives the file with the name of its manifest."""
        path = folder.path.with_name(f".{folder.run_id}.manifest")
        with storage_errors(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.path.mkdir(mode=0o700, exist_ok=True)
            file = path.open("a+", encoding="utf-8")
        with file:
            wait_for_lock(file, LOCK_SECONDS, PAUSE_SECONDS)
            yield file


def _content(file: TextIO) -> str:
    file.seek(0)
    return file.read()


def _replace(file: TextIO, text: str) -> None:
    with storage_errors(Path(file.name)):
        file.truncate(0)
        file.write(text)
        file.flush()


def _totals(folder: RunFolder, record: Json) -> Json:
    """Those that the run recorded at its end; before, they are counted from its turns."""
    totals: Json = record.get("totals") or {}
    return totals if totals and record["exit_code"] is not None else totals_of(folder, totals.get("seconds", 0.0))


LOOK_SECONDS = 1.0
"""How often a followed run is looked at: run processes save new events as often."""
AT_ONCE = 500


class SharedRuns:
    """The runs of one database. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.queued = QueuedRuns(database)
        self._known: dict[str, QueuedRun] = {}

    @classmethod
    def open(cls, url: str) -> SharedRuns | None:
        """None if the database is only used for journals. Raises `UsageError`, `StorageError`."""
        database = Database(url)
        try:
            is_shared = database.setting("schema_version") is not None
        finally:
            database.close()
        return cls(Database.open(url)) if is_shared else None

    def close(self) -> None:
        self.queued.close()
        self.database.close()

    @cached_property
    def mirrors(self) -> Mirrors:
        identity = self.database.setting("store_identity") or self.database.url
        folder = mirrors_folder() / hashlib.sha256(identity.encode()).hexdigest()[:16]
        return Mirrors(folder, lambda: self.store)

    @cached_property
    def store(self) -> Store:
        from codex_multi_role.extensions.machines.workers.submission import (
            open_store,  # here: slow to import, and not needed to list
        )

        return open_store(self.database, None, "")

    def command(self, *words: str) -> str:
        return command_line(*words, place=place_of(self.database.url))

    def find(self, reference: str) -> QueuedRun | None:
        """The run with that ID, the only one with that prefix, or the ``latest``; None if not found.

        Raises `RunNotFound` if several have the prefix, `StorageError`.
        """
        if reference == LATEST:
            chosen = (
                sa.select(runs.c.run_id)
                .order_by(runs.c.submitted_at.desc(), runs.c.line.desc(), runs.c.rank.desc())
                .limit(1)
            )
        else:
            begins = sa.func.substr(runs.c.run_id, 1, len(reference)) == reference
            shortest = (sa.func.length(runs.c.run_id), runs.c.run_id)
            chosen = sa.select(runs.c.run_id).where(begins, sa.literal(bool(reference))).order_by(*shortest).limit(2)
        with self.database.transaction() as connection:
            found = connection.scalars(chosen).all()
        if len(found) > 1 and found[0] != reference:
            message = f"several runs of {self.database} begin with '{reference}': {found[0]}, {found[1]}, …"
            raise RunNotFound(message, f"`{self.command('runs')}` lists them.")
        return self.row(found[0]) if found else None

    def row(self, run_id: str) -> QueuedRun:
        """What the database knows of the run now. Raises `RunNotFound`, `StorageError`."""
        found = self.queued.find(run_id)
        if found is None:
            raise RunNotFound(f'no run "{run_id}" in {self.database}', f"`{self.command('runs')}` lists them.")
        return found

    def mirror(self, run: QueuedRun) -> RunFolder:
        """A copy of the run's folder on this machine, brought up to date. Raises `StorageError`."""
        is_answered = run.run_id in answered_runs(self.database)
        record = shared_record(run, self.database.url, list_workers(self.database), is_answered=is_answered)
        return self.mirrors.refresh(run.manifest, record, partial(carry_out_early, self.database))

    def follow(self, run_id: str) -> Iterator[Record]:
        """Yield the record of every event of the run, also those to come, until the run ends or is parked.

        Raises `StorageError` if the database cannot be reached for `PATIENCE_SECONDS`.
        """
        reader = EventReader(self.mirrors.folder_of(run_id).events_path)
        while True:  # waits: for the run, ended by PATIENCE_SECONDS or its end
            status = self.database.patiently(lambda: self.mirror(self.row(run_id)).record()["status"])
            yield from read_records(reader.lines())
            if status not in (QUEUED, RunStatus.RUNNING):
                return
            time.sleep(LOOK_SECONDS)

    def look(self) -> list[RecordedRun]:
        """All runs without their folders, oldest first, reading only the rows that changed since the last call."""
        with self.database.transaction() as connection:
            changes = dict(connection.execute(sa.select(runs.c.run_id, runs.c.changed_at)).all())
        known = {name: run for name, run in self._known.items() if changes.get(name) == run.changed_at}
        new = [name for name in changes if name not in known]
        for start in range(0, len(new), AT_ONCE):
            part = new[start : start + AT_ONCE]
            known |= {run.run_id: run for run in self.queued.list(runs.c.run_id.in_(part))}
        self._known = known
        workers, answered = list_workers(self.database), answered_runs(self.database)
        ordered = sorted(known.values(), key=lambda run: (run.submitted_at, run.line or 0, run.rank))
        return [self._recorded(run, workers, is_answered=run.run_id in answered) for run in ordered]

    def _recorded(self, run: QueuedRun, workers: Sequence[KnownWorker], *, is_answered: bool) -> RecordedRun:
        record = shared_record(run, self.database.url, workers, is_answered=is_answered)
        return RecordedRun(self.mirrors.folder_of(run.run_id), record, (int(run.changed_at * 1e9), 0))
