"""Which files of a run folder are saved: all that another process needs, without what belongs to one machine.

Not saved: locks and who owns the run, its own journal, what can be made again (the report, copies of the workspace,
the index and the loose objects of private repositories, which travel as packs), and of a role's CODEX_HOME everything
except its threads, so never a login.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codex_multi_role.codex.home import THREADS
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.run_folder.folder import JOURNAL

OWN_OF_A_MACHINE = ("owner.json", JOURNAL, f"{JOURNAL}-shm", f"{JOURNAL}-wal")
"""Files that a restore leaves alone."""
_LEFT_OUT = frozenset({*OWN_OF_A_MACHINE, "report.html", "exported"})
_HOMES, _COPIES, SNAPSHOTS = ".codex", "worktrees", ".snapshots"
_OF_A_COPY = frozenset({"copy", "scratch", ".setup"})
_OF_A_REPOSITORY = frozenset({"HEAD", "info", "refs", "objects"})
"""Not its ``config``, which can name programs: each machine writes its own."""
_PREPARED = "prepared"
"""The mark, in ``info``, that this machine's copy of the workspace is prepared."""
_LOOSE = re.compile("[0-9a-f]{2}")
_UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}|tmp_.*|.*\.lock")
"""What atomic writes and git have not finished yet."""


class Signature(NamedTuple):
    """What changes if a file changes."""

    size: int
    mtime_ns: int
    inode: int
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Signature:
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, stat.S_IMODE(status.st_mode) & 0o777)


@dataclass(frozen=True)
class Selection:
    """The saved ``files`` by path, the ``empty`` folders, and the private git ``repositories``: relative paths."""

    files: dict[str, Signature]
    empty: tuple[str, ...]
    repositories: tuple[str, ...]


def select(folder: Path) -> Selection:
    """Look at a run folder as it is now; symlinks are left out. Raises `StorageError`."""
    files: dict[str, Signature] = {}
    empty: list[str] = []
    repositories: list[str] = []
    with storage_errors(folder):
        for path, entries in _walk(folder, ""):
            plain = [each for each in entries if each.is_file(follow_symlinks=False)]
            for entry in plain:
                try:
                    files[_join(path, entry.name)] = Signature.of(entry.stat(follow_symlinks=False))
                except FileNotFoundError:  # replaced or deleted meanwhile
                    continue
            if is_repository(path):
                repositories.append(path)
            if path and not entries:
                empty.append(path)
    return Selection(files, tuple(sorted(empty)), tuple(repositories))


def is_repository(path: str) -> bool:
    """Whether ``path``, relative to the run folder, is a private git repository of the run."""
    return path == SNAPSHOTS or (path.startswith(f"{_COPIES}/") and path.endswith("/snapshots.git"))


def _walk(folder: Path, path: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """The saved folders with their saved entries."""
    is_saved = _rule_for(path)
    try:
        with os.scandir(folder / path) as found:
            saved = (each for each in found if is_saved(each.name) and not each.is_symlink())
            entries = [each for each in saved if not _UNFINISHED.fullmatch(each.name)]
    except FileNotFoundError:  # deleted meanwhile
        return
    yield path, entries
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder, _join(path, entry.name))


def _rule_for(path: str) -> Callable[[str], bool]:
    """Which names in the folder ``path`` are saved; made once per folder, because there may be many files."""
    top = path.partition("/")[0]
    if not path:
        return lambda name: name not in _LEFT_OUT
    if top == _HOMES and path.count("/") == 1:
        return lambda name: name == THREADS
    if (inside := _inside_repository(path)) is not None:
        return _rule_of_repository(inside)
    if top == _COPIES:
        return lambda name: name not in _OF_A_COPY
    return lambda _: True


def _inside_repository(path: str) -> str | None:
    """``path`` relative to the repository that it is in; None if it is in none."""
    if path.startswith((_COPIES, SNAPSHOTS)):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            if is_repository("/".join(parts[:depth])):
                return "/".join(parts[depth:])
    return None


def _rule_of_repository(inside: str) -> Callable[[str], bool]:
    if not inside:
        return lambda name: name in _OF_A_REPOSITORY
    if inside == "objects":
        return lambda name: not _LOOSE.fullmatch(name)
    return lambda name: not (inside == "info" and name == _PREPARED)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
