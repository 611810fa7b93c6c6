"""Files that must not change: which they are, their state, and how it is restored.

A glob names paths relative to the workspace: ``*``, ``?`` and ``[…]`` within a name, ``**`` for any folders. One that
matches a folder covers everything in it. Files that git ignores are included. Symlinks themselves are covered, not
their targets. Case is ignored, because some file systems, and folders of file systems, ignore it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from codex_multi_role.errors import StorageError
from codex_multi_role.host.spelling import folded
from codex_multi_role.workspace.created_files import CACHES
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.paths import PathRefused, Workspace, covers, is_git_folder, patterns_of
from codex_multi_role.workspace.snapshots import Snapshots
from codex_multi_role.workspace.trees import Change, changes

_WILD = frozenset("*?[")


@dataclass(frozen=True)
class RestoredFiles:
    """What had to be restored: all paths, those that existed before (``damaged``), and the changes as a patch."""

    paths: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    patch: bytes = b""

    def __or__(self, other: RestoredFiles) -> RestoredFiles:
        paths, damaged = (
            tuple(sorted({*one, *two})) for one, two in ((self.paths, other.paths), (self.damaged, other.damaged))
        )
        return RestoredFiles(paths, damaged, self.patch + other.patch)


class ProtectedFiles:
    """The files of ``workspace`` that match ``globs``. Their state is a tree in the repository of ``snapshots``.

    Nothing is cached: each file is read again every time. Threads may share it, but only one at a time may put files
    back. Raises UsageError if git is missing, StorageError if it fails.
    """

    def __init__(self, snapshots: Snapshots, workspace: Workspace, globs: Sequence[str]) -> None:
        self._snapshots = snapshots
        self._workspace = workspace
        self._globs = sorted(set(globs))
        self._patterns = patterns_of(self._globs)
        # Left out unless a glob has the name.
        self._caches = [name for name in CACHES if not any(name in pattern for pattern in self._patterns)]

    def take(self) -> str:
        """The current state."""
        git = self._snapshots.repository()
        with _index(git) as index:
            return self._state(git, index)

    def first(self) -> str:
        """The state at the first call for these globs, in whichever process."""
        git = self._snapshots.repository()
        name = f"refs/protected/{hashlib.sha256(chr(0).join(self._globs).encode()).hexdigest()[:32]}"
        known = git.run("rev-parse", "--verify", "--quiet", name, allowed=(0, 1)).stdout.decode().strip()
        if not known:
            known = self.take()
            git.run("update-ref", name, known)
        return known

    def remove(self) -> RestoredFiles:
        """Remove all of them: originally none existed."""
        return self.put_back(self._snapshots.repository().run("mktree").stdout.decode().strip())

    def put_back(self, tree: str) -> RestoredFiles:
        """Restore the state ``tree``; no other file is touched, except caches of their bytecode."""
        git = self._snapshots.repository()
        with _index(git) as index:
            now = self._state(git, index)
            found = changes(git, tree, now)
            if found:
                git.run("read-tree", "--reset", "-u", tree, index=index)
            self._drop_bytecode()
        return self._report(tree, now, found)

    def among(self, paths: Iterable[str]) -> set[str]:
        """Those of ``paths``, as a role wrote them, that lead to such a file, existing or not."""
        found = set()
        for path in paths:
            with contextlib.suppress(PathRefused):
                real = self._workspace.resolve_inside(path).relative_to(self._workspace.root)
                if self._covers(real.as_posix()):
                    found.add(path)
        return found

    def _report(self, tree: str, now: str, found: dict[str, Change]) -> RestoredFiles:
        if not found:
            return RestoredFiles()
        damaged = [path for path, (before, _) in found.items() if before is not None]
        return RestoredFiles(tuple(sorted(found)), tuple(sorted(damaged)), self._snapshots.patch(tree, now))

    def _state(self, git: Git, index: Path) -> str:
        try:
            listed = b"".join(os.fsencode(path) + b"\0" for path in self._files())
        except OSError as error:
            raise StorageError(f"the protected files cannot be read: {error}", "Fix the workspace by hand.") from error
        git.run("update-index", "--add", "--remove", "-z", "--stdin", stdin=listed, index=index)
        return git.run("write-tree", index=index).stdout.decode().strip()

    def _files(self) -> set[str]:
        found = set()
        for start in {each for glob in self._globs for each in self._on_disk(_fixed_part(glob))}:
            if link := self._first_symlink(start):
                found.add(link)
            else:
                found.update(path for path in self._below(start) if self._covers(path))
        return found

    def _on_disk(self, fixed: str) -> list[str]:
        """All spellings of ``fixed`` that exist in the workspace; a symlink on the way ends the path."""
        starts = [""]
        for name in filter(None, fixed.split("/")):
            starts = [each for start in starts for each in self._next(start, folded(name))]
        return starts

    def _next(self, start: str, wanted: str) -> list[str]:
        if self._first_symlink(start):
            return [start]
        return [_join(start, name) for name in self._names(start) if folded(name) == wanted]

    def _names(self, path: str) -> list[str]:
        place = self._workspace.root / path
        if not place.is_dir():
            return []
        with os.scandir(place) as entries:
            return [entry.name for entry in entries]

    def _first_symlink(self, path: str) -> str:
        """The first symlink on the way to ``path``, including ``path`` itself, or an empty string."""
        parts = path.split("/")
        ways = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return next((way for way in ways if way and (self._workspace.root / way).is_symlink()), "")

    def _below(self, start: str) -> Iterator[str]:
        """Every file at or below ``start``; follows no symlink."""
        waiting = [start]
        while waiting:
            path = waiting.pop()
            place = self._workspace.root / path
            if path and (place.is_symlink() or place.is_file()):
                yield path
            elif not self._workspace.is_forbidden(place):
                waiting += [_join(path, name) for name in self._names(path) if not self._is_left_out(name)]

    def _is_left_out(self, name: str) -> bool:
        return is_git_folder(name) or any(fnmatchcase(name, cache) for cache in self._caches)

    def _covers(self, path: str) -> bool:
        return covers(self._patterns, path)

    def _drop_bytecode(self) -> None:
        """Delete the bytecode: Python runs a ``__pycache__`` file if it seems to match the source's age and length."""
        folders = {(self._workspace.root / path).parent for path in self._files() if path.endswith(".py")}
        for cache in (folder / "__pycache__" for folder in folders):
            if cache.is_symlink():
                cache.unlink(missing_ok=True)
            else:
                shutil.rmtree(cache, ignore_errors=True)


def _fixed_part(glob: str) -> str:
    """The folders of ``glob`` before its first wildcard, which contain all its files."""
    parts = glob.split("/")
    wild = next((number for number, part in enumerate(parts) if _WILD & set(part)), len(parts))
    return "/".join(parts[:wild])


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


@contextlib.contextmanager
def _index(git: Git) -> Iterator[Path]:
    """The path of a private index; one that a kill leaves behind does no harm."""
    index = git.git_dir / f"index.protected.{uuid.uuid4().hex}"
    try:
        yield index
    finally:
        index.unlink(missing_ok=True)
