"""A private copy of the workspace for each measurement: no leftovers reach the next one."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from codex_multi_role.checks.environments import is_environment
from codex_multi_role.errors import StorageError
from codex_multi_role.workspace import Workspace, ignored_folders, project_name

LEFT_OUT = frozenset({".git", "__pycache__", "node_modules", ".tox", ".nox", ".mypy_cache", ".pytest_cache"})
"""Folders that no test needs a copy of: they are large or generated."""


def is_left_out(folder: Path) -> bool:
    """Whether ``folder`` holds only generated or installed files, none of the project's own, as environments do."""
    return folder.name in LEFT_OUT or is_environment(folder)


def excluded_from_copies(workspace: Workspace, needed: Iterable[str]) -> frozenset[Path]:
    """What copies of the workspace leave out: the run folders, and the folders that git ignores.

    An ignored folder with any of the ``needed`` paths is copied. Raises UsageError without git, StorageError.
    """
    root = workspace.root
    paths = [root / each for each in needed]
    ignored = (root / each for each in ignored_folders(root))
    return frozenset([*workspace.forbidden, *(each for each in ignored if not _holds(each, paths))])


def copy_workspace(workspace: Workspace, folder: Path, left_out: Collection[Path]) -> Path:
    """Copy the workspace into ``folder``; return the copy's root, named like the project. Raises StorageError."""
    root = folder / "copy" / (project_name(workspace.root) or "workspace")

    def ignore(place: str, names: list[str]) -> set[str]:
        here = Path(place)
        return {each for each in names if here / each in left_out or _is_not_copied(here / each)}

    try:
        shutil.copytree(workspace.root, root, symlinks=True, ignore=ignore)
    except (OSError, shutil.Error) as error:
        raise StorageError(f"the workspace cannot be copied to {root}: {error}") from error
    return root


def _is_not_copied(path: Path) -> bool:
    """Whether to skip ``path``: also anything but files and folders, because a pipe would block."""
    if path.is_symlink() or path.is_file():
        return path.name in LEFT_OUT
    return not path.is_dir() or is_left_out(path)


def _holds(folder: Path, paths: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in paths)
