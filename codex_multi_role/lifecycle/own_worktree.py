"""A run in its own git worktree: created for a new run, opened for a resumed one, kept when the run ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import CodexMultiRoleError, ExitCode, UsageError
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.lifecycle.definitions import Definitions
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_options import RunReport
from codex_multi_role.workspace.repository import Repository
from codex_multi_role.workspace.run_worktree import (
    abandon_run_worktree,
    add_run_worktree,
    open_run_worktree,
    record_run_worktree,
)


def in_new_worktree(definitions: Definitions, folder: RunFolder) -> Definitions:
    """The definitions of a new run, in a new worktree if it has one. Raises `UsageError`, `StorageError`."""
    if not definitions.options.place.worktree:
        return definitions
    branch = definitions.options.place.branch or ""
    return _in(add_run_worktree(folder.worktrees_path, definitions.workspace, branch, folder.run_id), definitions)


def in_same_worktree(definitions: Definitions, folder: RunFolder, record: Mapping[str, Any]) -> Definitions:
    """The definitions of a resumed run, in its worktree if it has one. ``record``: its ``run.json``.

    Raises `UsageError` if the worktree was moved, or deleted and cannot be created again; `StorageError`.
    """
    if not definitions.options.place.worktree:
        return definitions
    root = open_run_worktree(folder.worktrees_path)
    if str(root) != record["workspace"]:
        raise UsageError(
            f"run {folder.run_id} cannot continue: its worktree was moved from {record['workspace']} to {root}",
            f"Move the folder of runs back, or `{folder.command('fork', '--from', 'STEP')}`.",
        )
    return _in(root, definitions)


def _in(root: Path, definitions: Definitions) -> Definitions:
    exclude_from_path(root)
    return replace(definitions, workspace=root)


def users_tree(definitions: Definitions) -> tuple[Path, ...]:
    """The user's tree and repository, if the run leaves them as they are: they may be in a temporary folder."""
    repository = Repository.around(definitions.source_workspace) if definitions.options.place.worktree else None
    return (repository.top, repository.git_dir) if repository else ()


def differences(definitions: Definitions, folder: RunFolder) -> list[str]:
    """Warnings about a new worktree: what it lacks, and tests that use the user's tree instead."""
    warnings = [_unseen_changes(definitions, folder)]
    if definitions.python.folders and not definitions.needs.setup:
        warnings.append(
            f"the Python of the tests ({definitions.python.path}) imports code from {definitions.source_workspace} and "
            "not from the worktree; workspace.setup can make an environment there"
        )
    return list(filter(None, warnings))


def _unseen_changes(definitions: Definitions, folder: RunFolder) -> str:
    repository = Repository.around(definitions.source_workspace)
    count = len(repository.uncommitted(folder.path.parent)) if repository else 0
    if not repository or not count:
        return ""
    what = "workspace" if repository.top == definitions.source_workspace else "repository"
    return f"the {what} has {count} uncommitted change{'s' * (count > 1)}, which the run does not see"


def keep_worktree(folder: RunFolder, report: RunReport, tree: str) -> None:
    """Mark the worktree of a run as ended, unless the run can be resumed. ``tree``: the last snapshot."""
    code = ExitCode.find(report.exit_code)
    if code is not None and not code.is_resumable:
        with suppress(CodexMultiRoleError):  # `gc` then keeps it
            record_run_worktree(folder.worktrees_path, tree)


def abandon_worktree(folder: RunFolder) -> None:
    """Remove the worktree of a run that could not start."""
    with suppress(CodexMultiRoleError):
        abandon_run_worktree(folder.worktrees_path)
