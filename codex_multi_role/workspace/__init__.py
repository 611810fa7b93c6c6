"""The folder the roles work on: safe file application, patches, bounded commands."""

from codex_multi_role.workspace.applied_files import AppliedFile, apply_files, write_inside
from codex_multi_role.workspace.commands import CommandResult, run_command
from codex_multi_role.workspace.created_files import created, existing_anywhere, unescaped
from codex_multi_role.workspace.occupation import occupied
from codex_multi_role.workspace.paths import FORK_MARK, PathRefused, Workspace, is_repository, matches, project_name
from codex_multi_role.workspace.protected import ProtectedFiles, RestoredFiles
from codex_multi_role.workspace.repository import ignored_folders, repositories_below
from codex_multi_role.workspace.snapshots import Snapshots
from codex_multi_role.workspace.worktrees import Worktrees

__all__ = [
    "FORK_MARK",
    "AppliedFile",
    "CommandResult",
    "PathRefused",
    "ProtectedFiles",
    "RestoredFiles",
    "Snapshots",
    "Workspace",
    "Worktrees",
    "apply_files",
    "created",
    "existing_anywhere",
    "ignored_folders",
    "is_repository",
    "matches",
    "occupied",
    "project_name",
    "repositories_below",
    "run_command",
    "unescaped",
    "write_inside",
]
