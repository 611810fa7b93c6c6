"""``gc``: remove the workspace copies of parallel roles, and worktrees of runs, unless something would be lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click

from codex_multi_role.cli.options import RUNS_DIR, command
from codex_multi_role.cli.output import put_line, say
from codex_multi_role.errors import CodexMultiRoleError, RunBusy, StorageError
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import Owner, RunFolder, list_runs
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.workspace.removal import RemovedCopies, collect, collect_abandoned

MANIFEST = "worktrees/manifest.json"


@command(RUNS_DIR)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
def gc(runs_dir: Path, dry_run: bool) -> None:
    """Remove the copies of the workspace in which parallel roles worked, for all runs in --runs-dir.

    A run that succeeded has removed those that it merged. What happened in a copy stays recorded in the run folder.

    The worktree of a run that has ended (--worktree) is removed as well, because its files are recorded in the run
    folder. It is kept if it changed after the run, or has commits that are on no branch.

    A copy is kept if it was not merged, if it changed after it was merged, or if its run is running. Files that git
    ignores do not count as changes, and neither does a git repository without commits.

    The files of copies are outside the project. Those of runs whose folders were deleted are removed as well, also of
    other projects.

    \b
    Examples:
      codex-multi-role gc --dry-run
    """
    counts: Counter[str] = Counter()
    found = ((folder.run_id, copy) for folder in list_runs(runs_dir) for copy in _collected(folder, dry_run))
    for run_id, copy in chain(found, collect_abandoned(dry_run=dry_run)):
        put_line(f"{copy.action}: {run_id} {copy.key}: {one_line(copy.reason)} ({copy.path})")
        counts[copy.action] += 1
    if not counts:
        say(f"There are no workspace copies in {runs_dir}.")
    if counts["failed"]:
        raise StorageError(f"{counts['failed']} could not be checked or removed", "The lines above give the reasons.")


def _collected(folder: RunFolder, dry_run: bool) -> Iterator[RemovedCopies]:
    manifest = folder.path / MANIFEST
    if not manifest.exists():
        return

    exclude_from_path(Path(folder.record()["workspace"]))
    try:
        if dry_run:
            yield from collect(manifest, alive=is_alive(folder), dry_run=True)
        else:
            yield from _collect_as_owner(folder, manifest)
    except CodexMultiRoleError as error:
        yield RemovedCopies("-", manifest.parent, "failed", str(error))


def _collect_as_owner(folder: RunFolder, manifest: Path) -> list[RemovedCopies]:
    """Collect as the run's owner, so that nobody resumes it meanwhile; a run that has an owner is alive."""
    owner = Owner(folder.owner_path)
    try:
        owner.acquire()  # waits: for nothing: it locks at once or raises RunBusy
    except RunBusy:
        return collect(manifest, alive=True, dry_run=False)
    try:
        return collect(manifest, alive=False, dry_run=False)
    finally:
        owner.release()
