"""What a command in the workspace can read or change although no snapshot has it.

That is: files that git ignores, files of nested repositories, permissions, empty folders, and the state of the
repository itself. Two runs are compared by contents; whether a turn changed any of it, so that its changes cannot be
made again from snapshots, by names and times.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.workspace.contents import CACHES, ENVIRONMENTS, ContentDigest, TooMuchToCompare
from codex_multi_role.workspace.git import UserGit
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.repository import top_around
from codex_multi_role.workspace.snapshots import Snapshots

TOO_MUCH = "too much to compare"
_REPOSITORY = "+"
_STATE = (("symbolic-ref", "--quiet", "HEAD"), ("show-ref", "--head"), ("ls-files", "--stage", "-z"))
"""The commands that print the branch, the commits of all references, and the index."""
WITHOUT_EFFECT = (*CACHES, ".cache", "*.py[co]", ".git")
"""What commands rewrite all the time, without an effect on others."""
LEVELS = 4
"""How deep environments, which can have 100,000 files, are compared: as deep as their packages have names."""


def hidden_files(snapshots: Snapshots, workspace: Workspace) -> str:
    """A digest of the hidden files after a snapshot, and of the repository; `TOO_MUCH` if it cannot be made.

    While the tests run before the first change, it is that of before: they do not start while it is made.
    """
    with snapshots.hiding:
        return snapshots.hidden or _digest(snapshots, workspace)


def _digest(snapshots: Snapshots, workspace: Workspace) -> str:
    untracked = frozenset(snapshots.untracked())
    found = ContentDigest(untracked.__contains__, workspace.forbidden, modes=True)
    try:
        found.add_folder(workspace.root)
        found.note(*map(_state_of, found.repositories))
        top = top_around(workspace.root)
        return found.hexdigest() + (f"{_REPOSITORY}{_state_of(top)}" if top else "")
    except (OSError, TooMuchToCompare, CodexMultiRoleError):
        return TOO_MUCH


def are_same_hidden_files(recorded: str, now: str) -> bool:
    """Whether a turn that saw the hidden files ``recorded`` would see the same ``now``.

    A restored workspace has no repository. It stands for the one in which the turn ran, so that only a repository that
    exists is compared.
    """
    return now in (recorded, recorded.partition(_REPOSITORY)[0])


def _state_of(top: Path) -> str:
    """A digest of the state of a repository. Raises `CodexMultiRoleError` if git cannot read it."""
    git, found = UserGit(top / ".git", top), hashlib.sha256()
    for command in _STATE:
        printed = git.run(*command, allowed=(0, 1)).stdout
        found.update(b"%d " % len(printed) + printed)
    return found.hexdigest()


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
