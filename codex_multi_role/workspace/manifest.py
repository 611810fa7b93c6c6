"""``manifest.json``: the copies of the workspace that a run made, and the state of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace.applied_files import write_inside
from codex_multi_role.workspace.copies import MANIFEST, Copy, CopyPaths
from codex_multi_role.workspace.merging import Conflict
from codex_multi_role.workspace.paths import Workspace


class Manifest:
    """The copies in ``folder``, one writer at a time. Threads may share it. Raises StorageError."""

    def __init__(self, folder: Path, run_id: str = "") -> None:
        self.folder = folder.resolve()
        self._path = self.folder / MANIFEST
        self._lock = Lock()
        self.run_id, self._copies = self._read() if self._path.exists() else (run_id, {})

    def __iter__(self) -> Iterator[Copy]:
        return iter(list(self._copies.values()))

    def find(self, key: str) -> Copy | None:
        return self._copies.get(key)

    def copy(self, key: str) -> Copy:
        """Raises StorageError if there is no such copy."""
        if found := self._copies.get(key):
            return found
        raise StorageError(f"{self._path} knows no copy {key}", "Was the run folder restored from an older state?")

    def put(self, copy: Copy) -> Copy:
        """Record ``copy`` on disk, then in memory."""
        with self._lock:
            copies = {**self._copies, copy.key: copy}
            listed = {"version": 1, "run_id": self.run_id, "copies": [asdict(each) for each in copies.values()]}
            write_json(self._path, listed)
            self._copies = copies
        return copy

    def change(self, key: str, **values: Any) -> Copy:  # noqa: ANN401 - the fields of Copy
        return self.put(replace(self.copy(key), **values))

    def _read(self) -> tuple[str, dict[str, Copy]]:
        try:
            content = json.loads(self._path.read_text())
            copies = [_copy(each) for each in content["copies"]]
            for copy in copies:
                CopyPaths(self.folder, copy.key)  # raises for a key that leads elsewhere
            return content["run_id"], {copy.key: copy for copy in copies}
        except (OSError, ValueError, TypeError, KeyError, UsageError) as error:
            hint = "The copies lie beside it: take from them what you need, then delete the folder."
            raise StorageError(f"{self._path} cannot be read: {error}", hint) from error


def _copy(content: dict[str, Any]) -> Copy:
    conflicts = tuple(Conflict(**each) for each in content["conflicts"])
    lists = {name: tuple(content[name]) for name in ("left_out", "nested", "paths")}
    return Copy(**{**content, **lists, "conflicts": conflicts})


def write_json(path: Path, value: object) -> None:
    """Like `write_file`, with indented JSON."""
    write_file(path, (json.dumps(value, indent=2) + "\n").encode())


def write_file(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step; creates its folder. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_inside(Workspace(path.parent), path.name, content)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}", "Is the disk full or read-only?") from error
