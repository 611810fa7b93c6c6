"""The records of all runs, cached for repeated reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.presentation.recorded import read_record
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.folder import RUN_ID


@dataclass(frozen=True)
class RecordedRun:
    """A run and its `read_record`; ``version``: modification time in ns and size of its ``run.json``."""

    folder: RunFolder
    record: dict[str, Any]
    version: tuple[int, int]


class Records:
    """The runs below one folder. Each record is kept until its ``run.json`` changes; threads may share it."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, RecordedRun] = {}

    def look(self) -> list[RecordedRun]:
        """Return the current runs, oldest first."""
        runs = sorted(self._read(), key=lambda run: (str(run.record.get("started_at", "")), run.folder.run_id))
        self._known = {run.folder.run_id: run for run in runs}
        return runs

    def _read(self) -> Iterator[RecordedRun]:
        known = self._known
        for name in _folders(self._runs_dir):
            folder = RunFolder(self._runs_dir / name)
            try:
                stat = folder.record_path.stat()
            except OSError:
                continue  # not a run, or removed meanwhile
            version = (stat.st_mtime_ns, stat.st_size)
            if name in known and known[name].version == version:
                yield known[name]
            else:
                yield RecordedRun(folder, read_record(folder), version)


def _folders(runs_dir: Path) -> list[str]:
    try:
        with os.scandir(runs_dir) as entries:
            return [each.name for each in entries if each.is_dir(follow_symlinks=False) and RUN_ID.fullmatch(each.name)]
    except OSError:
        return []
