"""The git worktree that a whole run works in, so that the user's own tree stays as it is.

It is the copy `OF_RUN` of the run's manifest, at the commit that the user has checked out. Its state is in the
snapshots of the run, so that it can be created again if somebody deleted it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.atomic import make_folder
from codex_multi_role.workspace.git import NOT_THERE
from codex_multi_role.workspace.manifest import OF_RUN, Copy, CopyPaths, Manifest, lost_tree, snapshots_of, top_of
from codex_multi_role.workspace.removal import clear
from codex_multi_role.workspace.repository import Repository, add_worktree, delete_branch, has_branch, write_worktree


def require_repository(source: Path, branch: str = "") -> Repository:
    """The repository around ``source`` with a commit, in which ``branch``, if given, can be created.

    Raises UsageError, StorageError.
    """
    repository = Repository.around(source)
    if repository is None:
        hint = f"Create one (git init {source}) and commit the files, or run without --worktree."
        raise UsageError(f"--worktree: {source} is not in a git repository, or git ignores it", hint)
    commit = repository.checked_out()
    if not commit:
        hint = "Commit the files that the run should see, or run without --worktree."
        raise UsageError(f"--worktree: the repository {repository.top} has no commit", hint)
    below = source.relative_to(repository.top)
    if below.parts and repository.git.run("cat-file", "-e", f"{commit}:{below}", allowed=(0, NOT_THERE)).returncode:
        hint = "Commit its files, or run without --worktree."
        raise UsageError(f"--worktree: the folder {below} is not in the commit that is checked out", hint)
    if branch and (problem := repository.branch_problem(branch)):
        raise UsageError(f"--branch: {problem}", "Name a branch that does not exist yet, such as attempt-1.")
    return repository


def add_run_worktree(folder: Path, source: Path, branch: str, run_id: str) -> Path:
    """Add the worktree of a new run at the user's commit; returns the folder in it that corresponds to ``source``.

    ``folder``: the records of the run's copies. Raises UsageError, StorageError.
    """
    repository = require_repository(source, branch)
    manifest = Manifest(folder, run_id)
    path = CopyPaths(manifest, OF_RUN).copy / (repository.top.name or "workspace")
    copy = Copy(
        key=OF_RUN,
        path=(path / source.relative_to(repository.top)).relative_to(manifest.place).as_posix(),
        kind="worktree",
        base="",
        repository=str(repository.git_dir),
        commit=repository.checked_out(),
        left_out=(),
        nested=(),
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        branch=branch,
    )
    manifest.put(replace(copy, branch=""))  # until the branch is ours: another run may create it first
    _check_out(manifest, copy)
    manifest.put(copy)
    manifest.change(OF_RUN, base=snapshots_of(manifest, copy).take())
    return manifest.place / copy.path


def _check_out(copies: Manifest, copy: Copy) -> None:
    clear(copies, copy)  # what is left of an earlier one
    copies.make_place()
    top = top_of(copies, copy)
    make_folder(top.parent)
    assert copy.repository is not None
    assert copy.commit is not None
    add_worktree(Path(copy.repository), top, copy.commit, copy.branch)
    write_worktree(top)


def open_run_worktree(folder: Path) -> Path:
    """The worktree of a run that is resumed, with the last recorded files if it is missing.

    Raises UsageError if it cannot be created again, StorageError.
    """
    manifest = Manifest(folder)
    copy = manifest.copy(OF_RUN)
    if not manifest.is_own(copy):
        hint = "`codex-multi-role fork RUN --from STEP` restores the recorded files in a new folder."
        raise UsageError(f"the worktree of run {manifest.run_id} was not made by this machine", hint)
    root = manifest.place / copy.path
    if not root.is_dir():
        _create_again(manifest, copy)
    if copy.state != "active" or copy.removed_at:
        manifest.change(OF_RUN, state="active", removed_at=None)
    return root


def _create_again(copies: Manifest, copy: Copy) -> None:
    root, last = copies.place / copy.path, lost_tree(copies, copy)
    try:
        _check_out(copies, copy)
        root.mkdir(parents=True, exist_ok=True)
    except StorageError as error:
        raise UsageError(
            f"the worktree {root} was deleted and cannot be created again: {error}",
            "`codex-multi-role fork RUN --from STEP` restores the recorded files in a new folder.",
        ) from error
    snapshots = snapshots_of(copies, copy)
    snapshots.leave_out(())  # it must be prepared again
    snapshots.restore(last)


def record_run_worktree(folder: Path, tree: str) -> None:
    """Record that the run has ended; ``tree``: the last snapshot, empty if nothing could change the files."""
    manifest = Manifest(folder)
    copy = manifest.copy(OF_RUN)
    manifest.change(OF_RUN, state="recorded", theirs=tree or copy.base)


def abandon_run_worktree(folder: Path) -> None:
    """Remove what `add_run_worktree` made for a run that could not start, with its branch."""
    manifest = Manifest(folder)
    copy = manifest.find(OF_RUN)
    if copy is None or copy.repository is None or copy.commit is None or not manifest.is_own(copy):
        return
    clear(manifest, copy)
    if copy.branch and has_branch(Path(copy.repository), copy.branch):
        delete_branch(Path(copy.repository), copy.branch, copy.commit)
