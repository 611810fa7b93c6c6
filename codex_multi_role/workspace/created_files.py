"""Files that did not exist when a run began, although their presence would matter to it or to the next one."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from codex_multi_role.host.settings_files import PYPROJECT, holds_settings
from codex_multi_role.workspace.paths import covers, matches, patterns_of

CACHES = ("__pycache__", ".*_cache", ".hypothesis", ".venv", "node_modules", ".tox", ".nox")
"""Folders that are recreated all the time, or hold thousands of third-party files."""
ANYWHERE = "**/"


def folders_below(root: Path, left_out: Collection[Path]) -> Iterator[tuple[Path, list[str]]]:
    """Every folder from ``root`` down with the names in it, outside git's folders, caches and ``left_out``."""
    for folder, names, files in os.walk(root):
        here = Path(folder)
        yield here, [*names, *files]
        names[:] = [
            name
            for name in names
            if name != ".git" and not any(fnmatchcase(name, cache) for cache in CACHES) and here / name not in left_out
        ]


def existing_anywhere(root: Path, globs: Sequence[str], left_out: Collection[Path]) -> list[str]:
    """The paths that match ``globs``, each ``**/NAME`` or ``**/FOLDER/NAME``; dangling symlinks are included.

    A ``pyproject.toml`` counts only while it holds settings.
    """
    tails = [each.removeprefix(ANYWHERE).split("/") for each in globs]
    firsts, patterns = {tail[0] for tail in tails}, patterns_of(globs)
    found = []
    for folder, names in folders_below(root, left_out):
        for name in names:
            if name.casefold() in firsts:
                paths = (path.relative_to(root).as_posix() for path in _candidates(folder / name, tails))
                found += [path for path in paths if covers(patterns, path) and _matters(root / path)]
    return sorted(found)


def _matters(path: Path) -> bool:
    return path.name.casefold() != PYPROJECT or holds_settings(path)


def _candidates(path: Path, tails: Iterable[Sequence[str]]) -> Iterator[Path]:
    if any(len(tail) == 1 for tail in tails):
        yield path
    with suppress(OSError):
        yield from path.iterdir()


def created(root: Path, absent: Sequence[str], present: Collection[str], left_out: Collection[Path]) -> list[str]:
    """The paths, as globs, that those of ``absent`` match now, and did not at first, when they matched ``present``.

    A path through a link is left out if what it leads to is there itself: an earlier link stays.
    """
    anywhere = [each for each in absent if each.startswith(ANYWHERE)]
    found = {path for each in absent if each not in anywhere for path in matches(root, each)}.difference(present)
    if anywhere:
        real = {os.path.realpath(root / path) for path in found}
        paths = {path for path in existing_anywhere(root, anywhere, left_out) if path not in present}
        found |= {path for path in paths if os.path.realpath(root / path) not in real}
    return [glob.escape(path) for path in sorted(found)]


def unescaped(name: str) -> str:
    """Undo `glob.escape`."""
    return re.sub(r"\[([*?[])\]", r"\1", name)
