"""What a command in the workspace can read or change although no snapshot has it.

That is: files that git ignores, files of nested repositories, permissions, empty folders, and the state of the
repository itself. Two runs are compared by contents.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.replays.reuse.contents import ContentDigest, TooMuchToCompare
from codex_multi_role.workspace.git import UserGit
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.repository import top_around
from codex_multi_role.workspace.snapshots import Snapshots

TOO_MUCH = "too much to compare"
REPOSITORY = "+"
_STATE = (("symbolic-ref", "--quiet", "HEAD"), ("show-ref", "--head"), ("ls-files", "--stage", "-z"))
"""The commands that print the branch, the commits of all references, and the index."""


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
        return found.hexdigest() + (f"{REPOSITORY}{_state_of(top)}" if top else "")
    except (OSError, TooMuchToCompare, CodexMultiRoleError):
        return TOO_MUCH


def _state_of(top: Path) -> str:
    """A digest of the state of a repository. Raises `CodexMultiRoleError` if git cannot read it."""
    git, found = UserGit(top / ".git", top), hashlib.sha256()
    for command in _STATE:
        printed = git.run(*command, allowed=(0, 1)).stdout
        found.update(b"%d " % len(printed) + printed)
    return found.hexdigest()
