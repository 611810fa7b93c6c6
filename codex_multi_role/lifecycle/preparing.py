"""Prepare what a run works in before its first turn: its own worktree, or one copy on trial if steps use copies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event

from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.definitions import Definitions, sandbox_of_tests
from codex_multi_role.lifecycle.members import unwritable_paths
from codex_multi_role.lifecycle.steering import Steering
from codex_multi_role.run_folder import RunFolder, list_turns
from codex_multi_role.workspace import Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.manifest import OF_RUN, Manifest
from codex_multi_role.workspace.preparation import Preparation

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
