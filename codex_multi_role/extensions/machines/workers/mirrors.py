"""Copies of the folders of shared runs on this machine: everything that looks at a run works on them as on its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from codex_multi_role.extensions.machines.store import Store, restore_run
from codex_multi_role.host.atomic import storage_errors, wait_for_lock, write_json
from codex_multi_role.host.user_cache import user_folder
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder, totals_of
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.run_folder.owner import WORKER

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
            write_json(folder.owner_path, {WORKER: worker} if worker else {})
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
