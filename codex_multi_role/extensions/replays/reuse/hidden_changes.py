"""Whether a turn saw, or changed, files that no snapshot has, so that its changes cannot be made again from snapshots.

Whether it changed any is seen by names and times, what it saw by the contents that `hidden_files` compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from codex_multi_role.extensions.replays.reuse.contents import CACHES, ENVIRONMENTS
from codex_multi_role.extensions.replays.reuse.hidden_files import REPOSITORY
from codex_multi_role.workspace import Snapshots, Workspace

WITHOUT_EFFECT = (*CACHES, ".cache", "*.py[co]", ".git")
"""What commands rewrite all the time, without an effect on others."""
LEVELS = 4
"""How deep environments, which can have 100,000 files, are compared: as deep as their packages have names."""


def are_same_hidden_files(recorded: str, now: str) -> bool:
    """Whether a turn that saw the hidden files ``recorded`` would see the same ``now``.

    A restored workspace has no repository. It stands for the one in which the turn ran, so that only a repository that
    exists is compared.
    """
    return now in (recorded, recorded.partition(REPOSITORY)[0])


def hidden_state(snapshots: Snapshots, workspace: Workspace) -> str:
    """A digest of all files and folders outside of snapshots, but for caches: by name, mode, size and time of change.

    Only for comparison with the state of the same workspace at another time. Environments count by the names
    in their upper levels.
    """
    found = hashlib.sha256()
    for name in sorted(snapshots.unrecorded()):
        for entry in _entries(workspace, workspace.root / name, None):
            found.update(entry.encode(errors="surrogateescape") + b"\0")
    return found.hexdigest()


def _entries(workspace: Workspace, path: Path, levels: int | None) -> Iterator[str]:
    """``path`` and what is below it. ``levels``: how many more are compared in an environment; None outside of one."""
    if path in workspace.forbidden or any(fnmatch(path.name, cache) for cache in WITHOUT_EFFECT):
        return
    if levels is None and path.name in ENVIRONMENTS:
        levels = LEVELS
    try:
        status = path.lstat()
        is_folder = path.is_dir() and not path.is_symlink()
        is_compared = levels is None and not is_folder
        yield f"{path} {status.st_mode} {(status.st_size, status.st_mtime_ns) if is_compared else ''}"
        if is_folder and levels != 0:
            for child in sorted(path.iterdir()):
                yield from _entries(workspace, child, None if levels is None else levels - 1)
    except OSError:
        yield f"{path} cannot be read"
