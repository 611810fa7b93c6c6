"""A restored run's workspace, as it was when the run was saved."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.run_folder import RunFolder
from codex_multi_role.store.restoring import SavedState
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.moving import move_copies


def fill_workspace(state: SavedState, folder: RunFolder, workspace: Path) -> None:
    """Make ``workspace``, such as a fresh clone, what the run had when ``state`` was saved, its copies included.

    ``folder``: the restored run folder. Files that git ignores stay as they are, because no snapshot has them. Without
    a saved tree, nothing in the run could change the workspace. Raises `UsageError`, `StorageError`.
    """
    place = Workspace.of_run(workspace.resolve(), folder.path.resolve())
    if state.tree:
        Snapshots(folder.snapshots_path, place).fill(state.tree)
    move_copies(folder.worktrees_path, place, state.copies)
