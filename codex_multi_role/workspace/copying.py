"""Make a copy of the workspace: a git worktree or a plain folder, filled from a snapshot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.manifest import Copy, CopyPaths, Manifest, snapshots_of, top_of
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.repository import Repository, add_worktree
from codex_multi_role.workspace.snapshots import Snapshots, copy_rules
from codex_multi_role.workspace.trees import repositories_in, without

_UNNAMED = "workspace"


def describe(copies: Manifest, key: str, workspace: Workspace, snapshots: Snapshots) -> Copy:
    """Describe a new copy ``key`` of the current workspace: records its state, writes none of its files.

    Raises UsageError, StorageError.
    """
    root = workspace.root
    inside = [each.relative_to(root).as_posix() for each in workspace.forbidden if each.is_relative_to(root)]
    repository = Repository.around(root)
    tree = snapshots.take()
    nested = repositories_in(private(snapshots, workspace), tree)
    # The folder keeps its name, because a workspace that is a package is imported by it.
    top = repository.top if repository else root
    path = CopyPaths(copies, key).copy / (top.name or _UNNAMED) / root.relative_to(top)
    return Copy(
        key=key,
        path=path.relative_to(copies.place).as_posix(),
        kind="worktree" if repository else "copy",
        base=without(private(snapshots, workspace), tree, [*inside, *nested]),
        repository=str(repository.git_dir) if repository else None,
        commit=repository.head() if repository else None,
        left_out=tuple(inside),
        nested=tuple(nested),
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def private(snapshots: Snapshots, workspace: Workspace) -> Git:
    """Git on the private repository of ``snapshots``."""
    return Git(snapshots._git.git_dir, workspace.root)


def register(copies: Manifest, copy: Copy) -> None:
    """Add the copy to the user's repository, if there is one; only one caller at a time. Raises StorageError."""
    copies.make_place()
    with _storage_errors(copies.place / copy.path):
        CopyPaths(copies, copy.key).copy.mkdir(parents=True)
    if copy.repository and copy.commit:
        add_worktree(Path(copy.repository), top_of(copies, copy), copy.commit)


def fill(copies: Manifest, copy: Copy, workspace: Workspace, snapshots: Snapshots) -> None:
    """Write the copy's files, and those of the user's repository around it. Raises StorageError."""
    root, git_dir = copies.place / copy.path, CopyPaths(copies, copy.key).snapshots
    theirs, ours = git_dir / "objects", private(snapshots, workspace).git_dir / "objects"
    with _storage_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        (theirs / "info").mkdir(parents=True)
        (theirs / "info" / "alternates").write_text(os.path.relpath(ours.resolve(), theirs.resolve()) + "\n")
    copy_rules(private(snapshots, workspace).git_dir, git_dir)
    snapshots_of(copies, copy).take()
    Git(git_dir, root).run("read-tree", "--reset", "-u", copy.base)
    for path in copy.nested:
        with _storage_errors(root / path):
            (root / path).mkdir(parents=True, exist_ok=True)
    if copy.repository:
        copy_surroundings(top_of(copies, copy), workspace)


def copy_surroundings(top: Path, workspace: Workspace) -> None:
    repository = Repository.around(workspace.root)
    if repository is None:
        return
    for path in repository.tracked_around(workspace.root):
        source, target = repository.top / path, top / path
        if not any(source.is_relative_to(folder) for folder in workspace.forbidden):
            with _storage_errors(target):
                _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    """Copies nothing if a file is gone, or has become a folder, perhaps a nested repository."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        shutil.copy2(source, target, follow_symlinks=False)


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise StorageError(f"the workspace cannot be copied: {where}: {error.strerror or error}") from error
