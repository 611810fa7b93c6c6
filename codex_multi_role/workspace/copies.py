"""What is known about a copy of the workspace, and where its files are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace.merging import Conflict
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.snapshots import Snapshots

MANIFEST = "manifest.json"
_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
_KEY = re.compile(f"{_NAME}(/{_NAME})*")  # the key of a called flow's unit is below the caller's

Kind = Literal["worktree", "copy"]
State = Literal["active", "unchanged", "merged", "conflicts", "kept"]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One copy of the workspace. ``path``: its root below the manifest's folder; ``base``: the tree it was made from.

    A worktree is at ``commit`` of ``repository``, the git folder that it shares. ``left_out`` are the folders that its
    snapshots exclude, ``nested`` the repositories in the workspace, which are empty folders in the copy. ``theirs``,
    ``paths`` and ``conflicts`` are known after a merge: the copy's tree at that time, the paths changed in the
    workspace, and those that were not.
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
    removed_at: str | None = None


class CopyPaths:
    """The paths of everything about the copy ``key``, below the manifest's ``folder``. Raises UsageError."""

    def __init__(self, folder: Path, key: str) -> None:
        if not _KEY.fullmatch(key) or key == MANIFEST:
            raise UsageError(f"'{key}' cannot name a copy of the workspace", "Use letters, digits, '_', '-' and '.'.")
        self.own = folder / key
        self.copy = self.own / "copy"
        self.snapshots = self.own / "snapshots.git"
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
        raise StorageError(f"the copy {root} of the workspace is gone", "Was it removed by hand, or by `gc`?")
    return Workspace(root, tuple(root / below for below in copy.left_out))


def snapshots_of(folder: Path, copy: Copy) -> Snapshots:
    """The copy's snapshots, in a private repository that also has those of the workspace. Raises StorageError."""
    return Snapshots(CopyPaths(folder, copy.key).snapshots, workspace_of(folder, copy))
