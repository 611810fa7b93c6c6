"""A private copy of the workspace for one measurement: nothing it leaves behind reaches the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

from codex_multi_role.checks.python import OWN_ENVIRONMENT
from codex_multi_role.errors import StorageError
from codex_multi_role.workspace import Workspace

LEFT_OUT = frozenset({".git", OWN_ENVIRONMENT, "__pycache__", "node_modules", ".tox", ".mypy_cache", ".pytest_cache"})
"""Folders that no test needs a copy of: they are large, or made anew."""


def copy_workspace(workspace: Workspace, folder: Path) -> Path:
    """Copy the workspace into ``folder``; returns the copy's root, which keeps its name. Raises StorageError."""
    root = folder / "copy" / (workspace.root.name or "workspace")

    def left_out(place: str, names: list[str]) -> set[str]:
        here = Path(place)
        return {each for each in names if each in LEFT_OUT or _left_out(here / each, workspace)}

    try:
        shutil.copytree(workspace.root, root, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise StorageError(f"the workspace cannot be copied to {root}: {error}") from error
    return root


def _left_out(path: Path, workspace: Workspace) -> bool:
    """Besides the run folders what is neither file nor folder: a pipe would be waited for."""
    return path in workspace.forbidden or not (path.is_symlink() or path.is_file() or path.is_dir())
