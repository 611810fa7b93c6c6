"""Globs for files of a workspace: ``*``, ``?`` and ``[…]`` within a name, ``**`` for any folders.

A glob that matches a folder covers everything in it. Case is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from glob import glob as glob_in
from pathlib import Path

from codex_multi_role.host.spelling import folded

Pattern = tuple[str, ...]


def patterns_of(globs: Iterable[str]) -> tuple[Pattern, ...]:
    return tuple(tuple(folded(glob).split("/")) for glob in globs)


def covers(patterns: Iterable[Pattern], path: str) -> bool:
    """Whether one of ``patterns`` matches ``path`` (relative, with ``/``) or a folder above it."""
    parts = folded(path).split("/")
    return any(_matches(pattern, parts) for pattern in patterns)


def in_place(root: Path, glob: str) -> bool:
    """Whether ``glob`` matches anything in ``root``, including a dangling symlink."""
    return bool(glob_in(glob, root_dir=root))  # noqa: PTH207 - Path.glob leaves dangling symlinks out


def _matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(pattern[1:], path[start:]) for start in range(len(path)))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _matches(pattern[1:], path[1:])
