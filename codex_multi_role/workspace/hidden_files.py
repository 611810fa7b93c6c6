"""What a command in the workspace can read although no snapshot has it.

That is: files that git ignores, files of nested repositories, permissions, empty folders, and the state of the
repository itself.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.workspace.contents import ContentDigest, TooMuchToCompare
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.repository import UserGit
from codex_multi_role.workspace.snapshots import Snapshots

TOO_MUCH = "too much to compare"
_REPOSITORY = "+"
_STATE = (("symbolic-ref", "--quiet", "HEAD"), ("show-ref", "--head"), ("ls-files", "--stage", "-z"))
"""The commands that print the branch, the commits of all references, and the index."""


def hidden_files(snapshots: Snapshots, workspace: Workspace) -> str:
    """A digest of the hidden files after a snapshot, and of the repository; `TOO_MUCH` if it cannot be made."""
    untracked = frozenset(snapshots.untracked())
    found = ContentDigest(untracked.__contains__, workspace.forbidden, modes=True)
    try:
        found.add_folder(workspace.root)
        found.note(*map(_state_of, found.repositories))
        top = _repository_around(workspace.root)
        return found.hexdigest() + (f"{_REPOSITORY}{_state_of(top)}" if top else "")
    except (OSError, TooMuchToCompare, CodexMultiRoleError):
        return TOO_MUCH


def are_same_hidden_files(recorded: str, now: str) -> bool:
    """Whether a turn that saw the hidden files ``recorded`` would see the same ``now``.

    A restored workspace has no repository. It stands for the one in which the turn ran, so that only a repository that
    exists is compared.
    """
    return now in (recorded, recorded.partition(_REPOSITORY)[0])


def _repository_around(root: Path) -> Path | None:
    places = (root, *root.parents)
    return next((top for top in places if (top / ".git").is_file() or (top / ".git/HEAD").exists()), None)


def _state_of(top: Path) -> str:
    """A digest of the state of a repository. Raises `CodexMultiRoleError` if git cannot read it."""
    git, found = UserGit(top / ".git", top), hashlib.sha256()
    for command in _STATE:
        printed = git.run(*command, allowed=(0, 1)).stdout
        found.update(b"%d " % len(printed) + printed)
    return found.hexdigest()
