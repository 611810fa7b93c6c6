"""Prepare what a run works in before its first turn: its own git worktree, or one copy on trial if steps use copies.

A worktree is created for a new run, opened for a resumed one, and kept when the run ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from codex_multi_role.errors import CodexMultiRoleError, ExitCode, UsageError
from codex_multi_role.host.processes import Family
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.lifecycle.definitions import Definitions, sandbox_of_tests
from codex_multi_role.lifecycle.members import unwritable_paths
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.run_options import RunReport
from codex_multi_role.workspace import Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.manifest import OF_RUN, Manifest
from codex_multi_role.workspace.preparation import Preparation
from codex_multi_role.workspace.repository import Repository
from codex_multi_role.workspace.run_worktree import (
    abandon_run_worktree,
    add_run_worktree,
    open_run_worktree,
    record_run_worktree,
)

SANDBOX_HOME = "tests"
TRIAL = "trial"


def preparation_of(
    definitions: Definitions, folder: RunFolder, read_only: tuple[Path, ...], stopping: Event
) -> Preparation | None:
    """How the run prepares its worktree and copies; None if they need nothing. ``read_only``: no setup may write it."""
    options, needs = definitions.options, definitions.needs
    if not needs:
        return None
    return Preparation(
        needs,
        Workspace.of_run(definitions.source_workspace, folder.path),
        Manifest(folder.worktrees_path).place,
        sandbox_variables(folder),
        sandbox_of_tests(options, definitions.codex, definitions.workspace, read_only),
        options.tests.test_seconds,
        folder.redact,
        definitions.isolates,
        stopping,
    )


def sandbox_variables(folder: RunFolder) -> dict[str, str]:
    """The variables of tests, checks and setups."""
    own = {**os.environ, "CODEX_HOME": str(folder.codex_home(SANDBOX_HOME))}
    return dict(Family.of_run(folder.path, "checks").marked(own))


def prepare_first(definitions: Definitions, folder: RunFolder, steering: Steering, stopping: Event) -> Iterator[str]:
    """Prepare the run's worktree, or try the setup that copies need, before the first turn; yields warnings.

    Once ``stopping`` is set, the setup is ended. Raises `SetupFailed`, `UsageError`, `StorageError`.
    """
    read_only = unwritable_paths(definitions, folder, steering)
    preparation = preparation_of(definitions, folder, read_only, stopping)
    if preparation is None:
        return
    workspace = Workspace.of_run(definitions.workspace, folder.path, steering.globs)
    snapshots = Snapshots(folder.snapshots_path, workspace)
    copies = folder.worktrees_path
    if definitions.options.place.worktree:
        yield from preparation.prepare(workspace, snapshots, copies / OF_RUN)
    elif definitions.isolates and definitions.needs.setup and not any(list_turns(folder)):
        number = sum(copy.key.startswith(TRIAL) for copy in Manifest(copies, folder.run_id)) + 1
        worktrees = Worktrees(copies, workspace, snapshots, folder.run_id, preparation)
        key = worktrees.create(f"{TRIAL}.{number}").key
        try:
            yield from worktrees.prepare(key)
        finally:
            worktrees.discard(key)


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
