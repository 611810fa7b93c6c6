"""``manifest.json``: the copies of the workspace that a run made, where their files are, and the state of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace.applied_files import write_inside
from codex_multi_role.workspace.merging import Conflict
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.snapshots import Snapshots

MANIFEST = "manifest.json"
OF_RUN = "run"
"""The key of the worktree that a run itself works in. Those of its units have a dot."""
_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
_KEY = re.compile(f"{_NAME}(/{_NAME})*")  # the key of a called flow's unit is below the caller's

Kind = Literal["worktree", "copy"]
State = Literal["active", "unchanged", "merged", "conflicts", "kept", "recorded"]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One copy of the workspace. ``path``: its root below the manifest's folder; ``base``: the tree it was made from.

    The worktree of the run itself may be on a ``branch``. It is ``recorded`` once the run has ended: ``theirs`` is the
    tree at its end, which the run's own snapshots include.

    A worktree is at ``commit`` of ``repository``, the git folder that it shares. ``left_out`` are the folders that its
    snapshots exclude, ``nested`` the repositories in the workspace, which are empty folders in the copy. ``theirs``,
    ``paths`` and ``conflicts`` are known after a merge: the copy's tree at that time, the paths changed in the
    workspace, and those that were not; ``before`` and ``after`` are the workspace's trees then, if it was changed.
    """

    key: str
    path: str
    kind: Kind
    base: str
    repository: str | None
    commit: str | None
    left_out: tuple[str, ...]
    nested: tuple[str, ...]
    created_at: str
    state: State = "active"
    theirs: str = ""
    paths: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    before: str = ""
    after: str = ""
    removed_at: str | None = None
    branch: str = ""


class CopyPaths:
    """The paths of everything about the copy ``key``, below the manifest's ``folder``. Raises UsageError."""

    def __init__(self, folder: Path, key: str) -> None:
        if not _KEY.fullmatch(key) or key == MANIFEST:
            raise UsageError(f"'{key}' cannot name a copy of the workspace", "Use letters, digits, '_', '-' and '.'.")
        self.own = folder / key
        self.copy = self.own / "copy"
        self.snapshots = folder.parent / ".snapshots" if key == OF_RUN else self.own / "snapshots.git"
        self.scratch = self.own / "scratch"
        self.plan = self.own / "merge.json"
        self.patch = self.own / "changes.patch"


def top_of(folder: Path, copy: Copy) -> Path:
    """The top folder of the worktree that contains ``copy``; for a plain folder its root."""
    own = CopyPaths(folder, copy.key).copy
    return own / (folder / copy.path).relative_to(own).parts[0]


def workspace_of(folder: Path, copy: Copy) -> Workspace:
    """The copy as a workspace, without the folders that the original excludes. Raises StorageError."""
    root = folder / copy.path
    if not root.is_dir():
        raise StorageError(f"the copy {root} of the workspace is missing", "Was it removed by hand, or by `gc`?")
    return Workspace(root, tuple(root / below for below in copy.left_out))


def snapshots_of(folder: Path, copy: Copy) -> Snapshots:
    """The copy's snapshots, in a private repository that also has those of the workspace. Raises StorageError."""
    return Snapshots(CopyPaths(folder, copy.key).snapshots, workspace_of(folder, copy))


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
        raise StorageError(
            f"{self._path} does not contain the copy {key}", "Was the run folder restored from an older state?"
        )

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
            hint = "The copies are next to it: save what you need from them, then delete the folder."
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
