"""What a command in the workspace can read although no snapshot has it: files that git ignores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.snapshots import Snapshots

ENVIRONMENTS = ("__pycache__", "*.py[co]", ".venv", "node_modules", ".tox", ".nox", ".*_cache", ".hypothesis")
"""Caches, and what is installed: like the programs of the machine, they are not compared."""
MOST_FILES, MOST_BYTES = 500, 16 * 1024 * 1024
TOO_MUCH = "too much to compare"


def hidden_files(snapshots: Snapshots, workspace: Workspace) -> str:
    """A digest of the hidden files after a snapshot; empty without any, `TOO_MUCH` for too many or too large ones."""
    found = hashlib.sha256()
    files = list(islice(_files(workspace, snapshots.untracked()), MOST_FILES + 1))
    if not files:
        return ""
    try:
        if len(files) > MOST_FILES or sum(file.stat().st_size for file in files) > MOST_BYTES:
            return TOO_MUCH
        for file in files:
            name = str(file.relative_to(workspace.root)).encode(errors="surrogateescape")
            found.update(b"%d %s %d " % (len(name), name, file.stat().st_size) + file.read_bytes())
    except OSError:
        return TOO_MUCH
    return found.hexdigest()


def _files(workspace: Workspace, untracked: Iterable[str]) -> Iterator[Path]:
    for name in sorted(untracked):
        path = workspace.root / name
        if not any(path.is_relative_to(each) or each.is_relative_to(path) for each in workspace.forbidden):
            yield from filter(_is_compared, sorted(path.rglob("*")) if path.is_dir() else [path])


def _is_compared(path: Path) -> bool:
    is_kept = not any(fnmatch(part, pattern) for part in path.parts for pattern in ENVIRONMENTS)
    return is_kept and path.is_file()
