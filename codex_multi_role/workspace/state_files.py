"""Which files a state of the workspace has: what the user's git tracks, and untracked files that it does not ignore.

An entry with skip-worktree keeps the content that git has for it, so that its file is in no state. Snapshots use
another index and not the user's settings, so this module reads both from the user's repository. A folder outside any
repository, or ignored by the one around it, has only its own ``.gitignore`` files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from codex_multi_role.workspace.repository import Repository

CACHES = ("__pycache__/", "*.py[co]", ".venv/", "node_modules/", ".tox/", ".nox/", ".*_cache/", ".hypothesis/")
"""What tests and tools make again; in a state only if it is tracked."""
MAX_BYTES = 1_000_000
"""Of one file with patterns."""
_BLANK = re.compile(r"(?<!\\) +$")


@dataclass(frozen=True)
class StateFiles:
    """``ignored``: patterns as in an exclude file at the workspace's top; a later one decides.

    ``tracked``: the files that are tracked although they match one of them or `CACHES`, relative to the workspace.
    """

    ignored: tuple[str, ...]
    tracked: tuple[str, ...]


def state_files(root: Path) -> StateFiles | None:
    """What the git repository around ``root`` says; None without one. Raises UsageError, StorageError."""
    repository = Repository.around(root)
    if repository is None:
        return None
    below = root.relative_to(repository.top)
    kept = (f"/{escaped(path)}" for path in present(root, repository.skipped(root)))
    tracked = repository.tracked_though_ignored(root, CACHES)
    return StateFiles((*_patterns(repository, below.parts), *kept), tuple(tracked))


def escaped(path: str) -> str:
    """``path`` as a pattern for an exclude file."""
    return re.sub(r"[\r\n]", "?", re.sub(r"([\\*?\[ #!])", r"\\\1", path))


def present(root: Path, paths: Sequence[str]) -> Iterator[str]:
    """The files and links among ``paths`` that exist, in folders that are not links."""

    @cache
    def is_folder(place: Path) -> bool:
        return place == root or (is_folder(place.parent) and place.is_dir() and not place.is_symlink())

    places = ((path, root / path) for path in paths)
    return (path for path, place in places if is_folder(place.parent) and (place.is_symlink() or place.is_file()))


def _patterns(repository: Repository, below: Sequence[str]) -> Iterator[str]:
    """The patterns of all files but those in the workspace, the weakest first."""
    places = [(repository.users_ignore_file(), below), (repository.git_dir / "info" / "exclude", below)]
    folder = repository.top
    for depth, name in enumerate(below):
        places.append((folder / ".gitignore", below[depth:]))
        folder /= name
    for file, parts in places:
        for line in patterns_in(file):
            yield from _seen_from(line, parts) if parts else (line,)


def patterns_in(file: Path) -> list[str]:
    """The patterns in ``file``; none if it is missing or cannot be read, as for git."""
    try:
        if not file.is_file():
            return []
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES)
    except OSError:
        return []
    return os.fsdecode(content.removeprefix(b"\xef\xbb\xbf")).replace("\0", "").replace("\r\n", "\n").split("\n")


def _seen_from(line: str, parts: Sequence[str]) -> Iterator[str]:
    """The pattern ``line`` as it has to be in the subfolder ``parts`` of its own folder."""
    pattern = _BLANK.sub("", line)
    negation = "!" if pattern.startswith("!") else ""
    body = pattern.removeprefix("!")
    if not body or body.startswith("#"):
        return
    if "/" not in body.rstrip("/"):
        yield pattern
        return
    slash = "/" if body.endswith("/") else ""
    for rest in _below(body.strip("/").split("/"), parts):
        yield f"{negation}/{'/'.join(rest)}{slash}"


def _below(pattern: Sequence[str], parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """What is left of ``pattern`` after it has matched the folders ``parts``."""
    if not pattern:
        return
    if not parts:
        yield pattern
    elif pattern[0] == "**":
        yield from _below(pattern[1:], parts)
        yield from _below(pattern, parts[1:])
    elif fnmatchcase(parts[0], re.sub(r"\\(.)", r"[\1]", pattern[0])):
        yield from _below(pattern[1:], parts[1:])
