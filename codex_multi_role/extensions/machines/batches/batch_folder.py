"""The layout of ``<runs>/batches/<name>/``: what a batch keeps beside the folders of its runs.

batch.json      what the goals have if their lines do not say otherwise
results.jsonl   a line per goal (or another file, see ``--output``)
output/<run>    what a run's process printed for people, as long as it is worth keeping
repositories/   mirrors of the repositories, one for all goals
owner.json      locked by the process that works on the batch
members.lock    locked by the processes of its runs, all together

The clones that goals work in are outside the project, as copies of a workspace are.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codex_multi_role.errors import RunBusy, UsageError
from codex_multi_role.extensions.machines.batches.planned_runs import Defaults
from codex_multi_role.host.atomic import make_folder, storage_errors, write_json
from codex_multi_role.lifecycle import own_records
from codex_multi_role.reading.json_files import read_object
from codex_multi_role.run_folder import Owner
from codex_multi_role.run_folder.folder import make_runs_folder
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workspace.manifest import usual_place

BATCHES = "batches"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
STOPPING_SECONDS = 90.0
LOOK_SECONDS = 0.1


class BatchFolder:
    """The folder of the batch ``name`` whose runs are in ``runs_dir``, or of one ``part`` of it: a shard."""

    def __init__(self, runs_dir: Path, name: str, part: str = "") -> None:
        self.name = name
        self.runs_dir = runs_dir
        self.path = runs_dir / BATCHES / (f"{name}.{part}" if part else name)
        self.record_path = self.path / "batch.json"
        self.results_path = self.path / "results.jsonl"
        self.output_path = self.path / "output"
        self.repositories_path = self.path / "repositories"
        self.workspaces_path = usual_place(self.path.resolve())
        self.members_path = self.path / "members.lock"

    @classmethod
    def of(cls, runs_dir: Path, name: str, part: str = "") -> BatchFolder:
        """Raises `UsageError` for a name that cannot be one."""
        if not NAME.fullmatch(name):
            hint = "Use at most 40 letters, digits, '_' and '-'; --name gives the batch another name."
            raise UsageError(f"'{name}' cannot be the name of a batch", hint)
        return cls(runs_dir.absolute(), name, part)

    @property
    def exists(self) -> bool:
        return self.record_path.exists()

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Create the folder, and be the only process that works on it; the processes of an earlier one have ended.

        Raises `RunBusy`, `StorageError`.
        """
        make_runs_folder(self.runs_dir)
        make_folder(self.path.parent)
        with storage_errors(self.path):
            self.path.mkdir(mode=0o700, exist_ok=True)
        make_folder(self.output_path)
        owner = Owner(self.path / "owner.json", f"batch {self.name}")
        owner.acquire()  # waits: for nothing: it locks at once or raises RunBusy
        try:
            self._wait_for_members()
            yield
        finally:
            owner.release()

    def _wait_for_members(self) -> None:
        end = time.monotonic() + STOPPING_SECONDS
        while not _lock_once(self.members_path, fcntl.LOCK_EX):
            if time.monotonic() > end:
                raise RunBusy(f"runs of batch {self.name} are still stopping", "Try again in a moment.")
            time.sleep(LOOK_SECONDS)

    def remember(self, defaults: Defaults, totals: Mapping[str, float]) -> None:
        """Write what ``--resume`` does not repeat. Raises `StorageError`."""
        options = RunOptions(**defaults.values).as_record()
        record = {"options": options, "given": sorted(defaults.given), "totals": dict(totals)}
        own_records.remember(record)
        write_json(self.record_path, record)

    def remembered(self) -> dict[str, Any]:
        """What `remember` wrote. Raises `UsageError` if it cannot be read."""
        record = read_object(self.record_path)
        if not {"options", "given", "totals"} <= record.keys():
            raise UsageError(f"{self.record_path} cannot be read", "Restore it from a copy, or start another batch.")
        return record


def join_members(path: Path) -> bool:
    """Lock the file until this process ends, together with others; False if a later process has the batch by now."""
    return _lock(path, fcntl.LOCK_SH) is not None


def _lock_once(path: Path, how: int) -> bool:
    descriptor = _lock(path, how)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def _lock(path: Path, how: int) -> int | None:
    with storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
