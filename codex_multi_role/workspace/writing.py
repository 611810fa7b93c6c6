"""Carry out the changes of a merge in the workspace: files of any kind, each in one step, only inside it.

No symlink is followed on the way, so that one created in between cannot lead outside.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace.merging import Conflict, Kind, Plan
from codex_multi_role.workspace.paths import PathRefused, Workspace
from codex_multi_role.workspace.trees import EXECUTABLE, SYMLINK, Change, TreeEntry

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder ``parts`` below ``root``, opened folder by folder; ``make`` creates missing ones.

    Raises OSError.
    """
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def replacing(folder: int, name: str) -> Iterator[str]:
    """The name for a new file in the open ``folder``, which replaces ``name`` in one step at the end of the block.

    It depends only on the target, so the resume of a run killed here replaces what was left. Raises OSError; ``name``
    then stays as it was.
    """
    temporary = f".codex-multi-role-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    try:
        yield temporary
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK = 1024 * 1024


def carry_out(workspace: Workspace, plan: Plan, staged: Path) -> tuple[list[str], list[Conflict]]:
    """Apply the changes of ``plan``, whose new files are in ``staged``; returns the changed paths and all conflicts.

    Changes already made are skipped, so that an interrupted merge can be repeated. Raises StorageError.
    """
    done, conflicts = [], list(plan.conflicts)
    # Deletions come first: a file may become a folder, and a folder a file.
    for path, change in sorted(plan.changes.items(), key=lambda each: (each[1][1] is not None, each[0])):
        try:
            problem = _carry_out(workspace, path, change, staged / path)
        except OSError as error:
            raise StorageError(f"{workspace.root / path} cannot be written: {error.strerror or error}") from error
        if problem:
            conflicts.append(Conflict(path, problem))
        else:
            done.append(path)
    return sorted(done), sorted(conflicts, key=lambda conflict: conflict.path)


def _carry_out(workspace: Workspace, path: str, change: Change, staged: Path) -> Kind | None:
    """Bring ``path`` from the first to the second state of ``change``, or return why it was left unchanged."""
    before, after = change
    try:
        _judge(workspace, path)
        now = _entry_on_disk(workspace.root, path, after or before)
    except PathRefused:
        return "off limits"
    except (NotADirectoryError, IsADirectoryError):
        # A file to be deleted is already gone then, perhaps because this merge replaced it.
        return None if after is None else "file and folder"
    if now not in (before, after):
        return "changed meanwhile"
    if after is None:
        _delete(workspace.root, path)
    elif now != after:
        _write(workspace.root, path, after, staged)
    return None


def _judge(workspace: Workspace, path: str) -> None:
    """Raises PathRefused for a path that no model may write either; checks a symlink itself, not its target."""
    place = workspace.root / path
    if place.is_dir() and not place.is_symlink():
        raise IsADirectoryError(path)
    # A name beside a symlink is in the same folder, but follows no link.
    beside = f"{path}.codex-multi-role" if place.is_symlink() else path
    if workspace.resolve_inside(beside) != workspace.root / beside or workspace.is_off_limits(path):
        raise PathRefused("unsafe path")


def _entry_on_disk(root: Path, path: str, like: TreeEntry | None) -> TreeEntry | None:
    """The file on disk as a tree entry, with an id of the same kind as that of ``like``."""
    *parents, name = path.split("/")
    try:
        with open_folder(root, parents) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                return TreeEntry(SYMLINK, _oid(len(target), [target], like))
            if not stat.S_ISREG(status.st_mode):
                raise IsADirectoryError(path)
            with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
                mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else "100644"
                return TreeEntry(mode, _oid(status.st_size, iter(lambda: file.read(_BLOCK), b""), like))
    except FileNotFoundError:
        return None


def _oid(size: int, blocks: Iterable[bytes], like: TreeEntry | None) -> str:
    """Git's id of ``size`` bytes of content: SHA-1, or SHA-256 if the repository uses that."""
    kind = "sha256" if like and len(like.oid) > hashlib.sha1().digest_size * 2 else "sha1"
    digest = hashlib.new(kind, b"blob %d\0" % size, usedforsecurity=False)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _write(root: Path, path: str, entry: TreeEntry, staged: Path) -> None:
    *parents, name = path.split("/")
    with open_folder(root, parents, make=True) as folder, replacing(folder, name) as temporary:
        if entry.mode == SYMLINK:
            os.symlink(staged.readlink(), temporary, dir_fd=folder)
        else:
            with staged.open("rb") as content:
                write_new(folder, temporary, name, content, executable=entry.mode == EXECUTABLE)


def write_new(folder: int, temporary: str, target: str, content: IO[bytes], *, executable: bool | None = None) -> None:
    """Write ``content`` to a new file, readable and writable by the same users as ``target``.

    Without ``executable``, it is executable by the same users as well.
    """
    descriptor = os.open(temporary, NEW_FILE, 0o777 if executable else 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(target, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                readers = status.st_mode & (0o777 if executable is None else 0o666)
                os.fchmod(descriptor, readers | (readers & 0o444) >> 2 if executable else readers)
        shutil.copyfileobj(content, file)


def _delete(root: Path, path: str) -> None:
    """Delete the file and the folders it leaves empty, because git does not track empty folders."""
    *parents, name = path.split("/")
    with contextlib.suppress(FileNotFoundError), open_folder(root, parents) as folder:
        os.unlink(name, dir_fd=folder)
    for depth in range(len(parents), 0, -1):
        try:
            with open_folder(root, parents[: depth - 1]) as folder:
                os.rmdir(parents[depth - 1], dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError:
            return
