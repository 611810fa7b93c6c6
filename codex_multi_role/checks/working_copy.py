"""Folders of a check outside the workspace: temporary ones, and a private copy for one measurement.

No leftovers reach the next measurement.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
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


def scratch_folder(workspace: Workspace) -> AbstractContextManager[Path]:
    """A folder for a command's temporary files, removed with its content. Raises StorageError.

    It is outside the workspace, because it would otherwise show up in snapshots.
    """
    return folder_outside(workspace.root)


@contextmanager
def folder_outside(root: Path) -> Iterator[Path]:
    """A temporary folder that is not in ``root``, wherever TMPDIR points. Raises StorageError."""
    candidates = map(Path, (tempfile.gettempdir(), "/var/tmp", "/tmp"))
    parent = next((path for path in candidates if path.is_dir() and not path.resolve().is_relative_to(root)), None)
    try:
        scratch = tempfile.TemporaryDirectory(prefix="check-", dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(f"a temporary folder cannot be created: {error.strerror}") from error
    with scratch as folder:
        yield Path(folder).resolve()
