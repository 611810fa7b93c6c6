"""Where a model's path leads: inside the workspace, or refused; and which files a glob covers.

A path is checked twice: as text (what no relative path may contain) and on disk, with every symlink followed. In globs,
``*``, ``?`` and ``[…]`` match within a name, ``**`` any folders; one that matches a folder covers everything in it.
Case is ignored.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from glob import glob as glob_in
from pathlib import Path
from typing import Literal

from codex_multi_role.errors import UsageError
from codex_multi_role.host.spelling import as_on_disk, folded
from codex_multi_role.host.user_cache import user_state

Pattern = tuple[str, ...]
FORK_MARK = ".fork-"
"""What the name of a fork's own folder has after that of the project."""


def project_name(folder: Path) -> str:
    """The folder's name, the same in the project and in its forks."""
    return folder.name.partition(FORK_MARK)[0] or folder.name


def patterns_of(globs: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(tuple(folded(glob).split("/")) for glob in globs)


def covers(patterns: Iterable[Pattern], path: str) -> bool:
    """Whether one of ``patterns`` matches ``path`` (relative, with ``/``) or a folder above it."""
    parts = folded(path).split("/")
    return any(_matches(pattern, parts) for pattern in patterns)


def matches(root: Path, glob: str) -> list[str]:
    """What ``glob`` matches in ``root``, relative to it, including dangling symlinks and hidden files."""
    return glob_in(glob, root_dir=root, include_hidden=True)  # noqa: PTH207 - Path.glob leaves dangling symlinks out


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(pattern[1:], path[start:]) for start in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(pattern[1:], path[1:])


MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
CODEX_FOLDERS = (".codex", ".agents")
"""Codex starts the servers and hooks of a trusted project's ``.codex`` outside every sandbox (measured)."""
_UNSAFE_TEXT = re.compile(r"[/~]|[A-Za-z]:|.*\\", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

Refusal = Literal["unsafe path", "invalid path"]


class PathRefused(Exception):
    """A model's path was refused. ``reason`` is recorded in ``applied_files.json``."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Workspace:
    """The folder ``root`` that the roles work on, without the ``forbidden`` folders (the run folders).

    Both are stored as real paths. ``steering``: globs of files that may be read, but that no model may write. Raises
    UsageError if ``root`` is not a folder.
    """

    root: Path
    forbidden: tuple[Path, ...] = ()
    steering: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            what = "is not a folder" if self.root.exists() else "does not exist"
            raise UsageError(f"the workspace {self.root} {what}", "name a folder with --workspace")
        object.__setattr__(self, "root", as_on_disk(self.root))
        object.__setattr__(self, "forbidden", tuple(as_on_disk(folder) for folder in self.forbidden))

    @classmethod
    def of_run(cls, root: Path, run_folder: Path, steering: tuple[str, ...] = ()) -> Workspace:
        """Exclude the user's state, and the folder of all runs or, if ``root`` is inside it, only the run's own folder.

        A worker's copies are inside the run's folder, and contain nothing of it.
        """
        if root.is_relative_to(run_folder):
            return cls(root, (), steering)
        runs_dir, state = run_folder.parent, user_state()
        own = (state,) if state.is_relative_to(root) else ()
        return cls(root, (run_folder if root.is_relative_to(runs_dir) else runs_dir, *own), steering)

    def resolve_inside(self, relative: str) -> Path:
        """The real path of a file that a model named relative to the workspace; it need not exist.

        Raises PathRefused: ``unsafe path`` leads, or tries to lead, where nothing may be written; ``invalid path`` is
        not a file name, or names something that is not a file.
        """
        _refuse_text(relative)
        path = Path(os.path.realpath(self.root / relative))
        if not path.is_relative_to(self.root) or _steers_programs(path.relative_to(self.root).parts):
            raise PathRefused("unsafe path")
        try:
            if self.is_forbidden(path) or path.is_symlink():
                raise PathRefused("unsafe path")
            if path.exists() and not path.is_file():
                raise PathRefused("invalid path")
        except OSError as error:  # without access, the failing write reports the reason
            if error.errno == errno.ENAMETOOLONG:  # with the root, or after a link
                raise PathRefused("invalid path") from None
        return path

    def resolve_writable(self, relative: str) -> Path:
        """Like `resolve_inside`, for a file that is about to be written or deleted."""
        path = self.resolve_inside(relative)
        if self.is_off_limits(path.relative_to(self.root).as_posix()):
            raise PathRefused("unsafe path")
        return path

    def is_off_limits(self, path: str) -> bool:
        """Whether the file ``path`` (real, relative) steers a run, or would be in what git takes for a repository."""
        parts = path.split("/")
        return covers(self._steering, path) or any(
            is_repository(self.root.joinpath(*parts[:depth]), name) for depth, name in enumerate(parts)
        )

    @cached_property
    def _steering(self) -> tuple[Pattern, ...]:
        return patterns_of(self.steering)

    def is_forbidden(self, path: Path) -> bool:
        """Whether ``path`` is in or is a forbidden folder, compared by name and by identity.

        A file system may know one folder by several spellings.
        """
        lineage = [path, *path.parents]
        if any(folder in lineage for folder in self.forbidden):
            return True
        identities = {_identity(folder) for folder in self.forbidden} - {None}
        return any(_identity(parent) in identities for parent in lineage)


def _refuse_text(relative: str) -> None:
    parts = relative.split("/")
    if not relative or _CONTROL.search(relative) or relative.endswith("/"):
        raise PathRefused("invalid path")
    if _UNSAFE_TEXT.match(relative) or ".." in parts or _steers_programs([part for part in parts if part != "."]):
        raise PathRefused("unsafe path")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        raise PathRefused("invalid path") from None
    if max(sizes) > MAX_NAME_BYTES or sum(sizes) + len(sizes) > MAX_PATH_BYTES:
        raise PathRefused("invalid path")


def _steers_programs(parts: Sequence[str]) -> bool:
    """Whether git (at any depth) or Codex (at the top) reads this as something to run."""
    return any(map(is_git_folder, parts)) or _plain("".join(parts[:1])) in CODEX_FOLDERS


def is_git_folder(name: str) -> bool:
    """Whether some file system treats ``name`` as ``.git``: in any case, with invisible characters, as a short name.

    Source: git's own ``verify_path`` (is_hfs_dotgit, is_ntfs_dotgit).
    """
    return _plain(name) in {".git", "git~1"}


def is_repository(folder: Path, name: str = "") -> bool:
    """Whether git takes ``folder`` for a repository once it has ``name``: it would run what its ``config`` names.

    Source: git's ``is_git_directory``; ``commondir`` says where the rest is.
    """
    with suppress(OSError):
        names = {_plain(each) for each in (*os.listdir(folder), name)}  # noqa: PTH208 - names are all that is needed
        return "head" in names and ("commondir" in names or names >= {"objects", "refs"})
    return False


def _plain(name: str) -> str:
    if not name.isascii():
        visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
        name = unicodedata.normalize("NFKC", visible)
    return name.casefold().split(":")[0].rstrip(" .")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
