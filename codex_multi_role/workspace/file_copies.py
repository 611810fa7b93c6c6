"""Copy the files that a fresh worktree needs: from the user's workspace, or what a setup has made in another copy."""

from __future__ import annotations

import glob
import hashlib
import mmap
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.workspace.paths import Workspace, is_git_folder

_COMPILED = ".pyc"


def copied_paths(source: Workspace, globs: Iterable[str]) -> dict[str, list[str]]:
    """The paths in the workspace ``source`` that each glob matches, without git's folders and the forbidden ones.

    Raises UsageError for a glob that leads out of the workspace, by itself or by a link.
    """
    return {each: sorted(_matches(source, each)) for each in globs}


def _matches(source: Workspace, pattern: str) -> Iterator[str]:
    if pattern.startswith(("/", "~")) or ".." in Path(pattern).parts:
        raise _outside(source, pattern)
    for name in glob.glob(pattern, root_dir=source.root, recursive=True, include_hidden=True):  # noqa: PTH207
        path = source.root / name
        if not path.parent.resolve().is_relative_to(source.root):
            raise _outside(source, name)
        if not any(map(is_git_folder, Path(name).parts)) and not source.is_forbidden(path):
            yield name.rstrip("/")


def _outside(source: Workspace, name: str) -> UsageError:
    hint = "Name files and folders of the workspace itself, relative to it."
    return UsageError(f"workspace.copy: {name} is outside the workspace {source.root}", hint)


def copy_if_absent(source: Path, target: Path, left_out: Sequence[Path] = ()) -> None:
    """Copy the file, link or folder ``source``, except for what ``target`` has already; links stay links.

    Sockets and the like, git's folders and ``left_out`` are not copied. Raises OSError.
    """
    if source in left_out or is_git_folder(source.name):
        return
    mode = source.lstat().st_mode
    if stat.S_ISDIR(mode):
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            return
        target.mkdir(exist_ok=True)
        for name in sorted(os.listdir(source)):  # noqa: PTH208 - names are all that is needed
            copy_if_absent(source / name, target / name, left_out)
        shutil.copystat(source, target)
    elif not os.path.lexists(target) and (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        shutil.copy2(source, target, follow_symlinks=False)


def make_parents(root: Path, path: str) -> bool:
    """Create the folders above ``path`` in ``root``; False if a link or a file is in their place. Raises OSError."""
    here = root
    for name in Path(path).parts[:-1]:
        here /= name
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            return False
        here.mkdir(exist_ok=True)
    return True


def digest_of(root: Path, paths: Iterable[str]) -> str:
    """A digest of the files and links in ``paths`` of ``root``, with their names and modes."""
    digest = hashlib.sha256()
    for path in sorted(_files(root, paths)):
        status = path.lstat()
        digest.update(f"{path.relative_to(root)}\0{status.st_mode:o}\0".encode(errors="surrogateescape"))
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        else:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _files(root: Path, paths: Iterable[str]) -> Iterator[Path]:
    for each in paths:
        path = root / each
        if path.is_dir() and not path.is_symlink():
            for folder, names, files in os.walk(path):
                links = (name for name in names if (Path(folder) / name).is_symlink())
                yield from (Path(folder) / name for name in (*files, *links))
        elif path.is_symlink() or path.is_file():
            yield path


def moved_files(root: Path, paths: Iterable[str]) -> list[str] | None:
    """The texts and links in ``paths`` that name ``root`` itself, and so must change in another folder.

    None if a binary file does: nobody knows how to change it. Compiled Python only shows the path in tracebacks.
    """
    name, found = os.fsencode(root), []
    for path in _files(root, paths):
        if path.is_symlink():
            if path.readlink().is_relative_to(root):
                found.append(str(path.relative_to(root)))
        elif path.suffix != _COMPILED and path.is_file() and path.stat().st_size:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if content.find(name) < 0:
                    continue
                if content.find(b"\0") >= 0:
                    return None
            found.append(str(path.relative_to(root)))
    return found


def move_file(path: Path, before: Path, after: Path) -> None:
    """Replace the folder ``before`` by ``after`` in the text of ``path``, or in the target of the link."""
    if path.is_symlink():
        target = after / path.readlink().relative_to(before)
        path.unlink()
        path.symlink_to(target)
    else:
        status = path.stat()
        path.write_bytes(path.read_bytes().replace(os.fsencode(before), os.fsencode(after)))
        path.chmod(stat.S_IMODE(status.st_mode))
