"""The copies of a workspace after its run moved to another machine: their files are made again from snapshots.

Only their private repositories, merge plans and patches travel with the run folder. A copy that may still be worked on
or merged, or that waits for a person, gets its files back; it is a worktree of the repository at the new place if that
has the commit, otherwise a plain folder. Of the others, such as merged ones, the record stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from codex_multi_role.host.atomic import make_folder
from codex_multi_role.workspace.copying import copy_surroundings, register
from codex_multi_role.workspace.manifest import MANIFEST, OF_RUN, Copy, CopyPaths, Manifest, snapshots_of, top_of
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.repository import Repository, forget_worktree

NEEDED = ("active", "kept", "conflicts")


def move_copies(folder: Path, workspace: Workspace, trees: Mapping[str, str]) -> None:
    """Make the files of the copies in ``folder`` again, at the new place ``workspace`` of the run.

    ``trees``: the latest snapshots of the copies, by key. Raises UsageError, StorageError.
    """
    if not (folder / MANIFEST).exists():
        return
    manifest = Manifest(folder)
    for copy in manifest:
        tree = trees.get(copy.key) or copy.theirs
        if copy.state in NEEDED and copy.key != OF_RUN and tree and not copy.removed_at:
            fill_again(manifest, copy, workspace, tree)
        elif not copy.removed_at:
            manifest.change(copy.key, removed_at=datetime.now(UTC).isoformat(timespec="milliseconds"))


def at_new_place(copy: Copy, repository: Repository | None) -> Copy:
    if copy.repository and copy.commit and repository and repository.has(copy.commit):
        return replace(copy, repository=str(repository.git_dir))
    return replace(copy, kind="copy", repository=None, commit=None)


def fill_again(copies: Manifest, copy: Copy, workspace: Workspace, tree: str) -> Copy:
    """Unlike a new copy, this one keeps its repository, and gets the files that it had last."""
    copy = copies.put(at_new_place(copy, Repository.around(workspace.root)))
    root, top = copies.place / copy.path, top_of(copies, copy)
    delete_folder(CopyPaths(copies, copy.key).copy)
    if copy.repository:
        forget_worktree(Path(copy.repository), top)
    register(copies, copy)
    make_folder(root)
    snapshots = snapshots_of(copies, copy)
    snapshots.leave_out(())  # it must be prepared again
    snapshots.fill(tree)
    for path in copy.nested:
        make_folder(root / path)
    if copy.repository:
        copy_surroundings(top, workspace)
    return copy
