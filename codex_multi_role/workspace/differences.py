"""What changed between two trees of a private repository: files, lines, and the patch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from codex_multi_role.workspace.git import Git, RecordedGit

STATUSES = {"A": "added", "D": "deleted", "R": "renamed"}
"""By git's letter; any other file is ``modified``."""
PATCH = ("--patch", "--binary", "--full-index")
_FIXED = ("-r", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


@dataclass(frozen=True)
class FileChange:
    """A file that differs, its status, and its lines, None in a binary one; ``old_path`` if it was renamed."""

    path: str
    status: str
    added: int | None
    removed: int | None
    old_path: str = ""


@dataclass(frozen=True)
class Changes:
    """The difference of two trees, without the files and folders ``left_out``. Raises `StorageError`.

    Without ``renames``, a renamed file is one that was deleted and one that was added.
    """

    git: Git
    before: str
    after: str
    left_out: tuple[str, ...] = ()
    renames: bool = True

    @classmethod
    def recorded(cls, states: Path, run: Path, before: str, after: str, left_out: tuple[str, ...]) -> Changes:
        """Of two states of the workspace that a run recorded; all paths are absolute."""
        return cls(RecordedGit(states, run), before, after, left_out)

    @cached_property
    def files(self) -> tuple[FileChange, ...]:
        """In order of their paths."""
        printed = os.fsdecode(self.printed("--raw", "--numstat", "-z")).split("\0")[:-1]
        return tuple(_file_changes(iter(printed)))

    def patch(self, *paths: str) -> bytes:
        """As git prints it, of all files or those in ``paths``, binary files included."""
        return self.printed(*PATCH, paths=paths)

    def printed(self, *options: str, paths: Sequence[str] = (), output: IO[bytes] | None = None) -> bytes:
        """What `git diff-tree` prints with ``options``, of all files or those in ``paths``."""
        if self.before == self.after:
            return b""
        where = [f":(literal){path}" for path in paths] or ["."]
        excluded = (f":(exclude,literal){path}" for path in self.left_out)
        renames = "--find-renames" if self.renames else "--no-renames"
        arguments = (*_FIXED, renames, *options, self.before, self.after, "--", *where, *excluded)
        return self.git.run("diff-tree", *arguments, output=output).stdout


def _file_changes(printed: Iterator[str]) -> Iterator[FileChange]:
    """All raw records come first, then those with counts, in the same order."""
    found: list[tuple[str, str, str]] = []
    for record in printed:
        if record.startswith(":"):
            letter, old_path = record.rpartition(" ")[2][:1], next(printed)
            found.append((STATUSES.get(letter, "modified"), old_path, next(printed) if letter == "R" else old_path))
            continue
        status, old_path, path = found.pop(0)
        added, removed, name = record.split("\t", 2)
        if not name:  # both names of a renamed file follow
            next(printed), next(printed)
        yield FileChange(path, status, _lines(added), _lines(removed), old_path if status == "renamed" else "")


def _lines(count: str) -> int | None:
    """A count as git prints it: ``-`` for a binary file."""
    return int(count) if count.isdecimal() else None
