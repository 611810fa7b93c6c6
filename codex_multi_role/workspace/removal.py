"""Remove copies of the workspace that the manifest owns, once nothing in them would be lost."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from codex_multi_role.errors import CodexMultiRoleError, StorageError, UsageError
from codex_multi_role.host.user_cache import make_private
from codex_multi_role.workspace.manifest import (
    OF_RUN,
    Copy,
    CopyPaths,
    Manifest,
    all_places,
    owner_of,
    snapshots_of,
    top_of,
)
from codex_multi_role.workspace.occupation import occupied
from codex_multi_role.workspace.repository import forget_worktree, has_own_commits

MERGED = ("merged", "unchanged")
"""The states of copies whose work is all in the workspace."""
_NAMED_CONFLICTS = 3
_SAVED = "its files are recorded in the run folder"


@dataclass(frozen=True)
class RemovedCopies:
    """What was done with one copy, and why."""

    key: str
    path: Path
    action: Literal["removed", "would remove", "kept", "failed"]
    reason: str


def collect(manifest_path: Path, *, alive: bool, dry_run: bool) -> list[RemovedCopies]:
    """Remove a run's copies that were merged and have not changed since; keep all others, and report why.

    Its own worktree is removed if it has ended and its snapshots include all files.

    ``alive``: a process works on the run, so nothing of it is touched; the caller prevents a resume meanwhile. Files
    that git ignores in a copy do not count as changes. Raises StorageError if the manifest cannot be read.
    """
    manifest = Manifest(manifest_path.parent)
    return [_collect(manifest, copy, alive, dry_run) for copy in _existing(manifest)]


def _existing(manifest: Manifest) -> list[Copy]:
    """The copies that were not removed, or only in part because of a kill."""
    return [copy for copy in manifest if not copy.removed_at or CopyPaths(manifest, copy.key).copy.exists()]


def make_room(workspace: Path) -> None:
    """Remove copies that no run has any more. Raise `UsageError` if new ones cannot be outside ``workspace``."""
    places = all_places()
    hint = "Set XDG_STATE_HOME to a folder outside the project that nobody else can write."
    if places.is_relative_to(workspace):
        raise UsageError(f"copies of the workspace cannot be in {places}: that is inside the workspace", hint)
    try:
        make_private(places)
    except OSError as error:
        raise UsageError(f"copies of the workspace cannot be in {places}: {error.strerror or error}", hint) from error
    with suppress(StorageError):  # what another project left stops no run
        list(collect_abandoned(worktrees=False))


def collect_abandoned(*, dry_run: bool = False, worktrees: bool = True) -> Iterator[tuple[str, RemovedCopies]]:
    """Remove the copies of runs of any project whose folders were deleted, with ``worktrees`` of runs only if wanted.

    A run folder may only be out of reach, such as in another container with the same home. Then the copies of a run
    that works stay, because it holds `occupied` on them; of others, the run folder has the files. Raises StorageError.
    """
    for place in all_places().glob("*"):
        records = owner_of(place)
        if not records or records.is_dir() or (not worktrees and (place / OF_RUN).exists()):
            continue
        with occupied(place) as by_its_run:
            if by_its_run:
                continue
            if not dry_run:
                delete_folder(place)
        action: Literal["removed", "would remove"] = "would remove" if dry_run else "removed"
        yield records.parent.name, RemovedCopies("copies", place, action, "its run folder was deleted")


def _collect(manifest: Manifest, copy: Copy, alive: bool, dry_run: bool) -> RemovedCopies:
    def done(action: Literal["removed", "would remove", "kept", "failed"], reason: str) -> RemovedCopies:
        return RemovedCopies(copy.key, manifest.place / copy.path, action, reason)

    try:
        if reason := "its run is being worked on" if alive else _reason_to_keep(manifest, copy):
            return done("kept", reason)
        if not dry_run:
            _remove(manifest, copy)
    except CodexMultiRoleError as error:
        return done("failed", str(error))
    return done("would remove" if dry_run else "removed", _SAVED if copy.state == "recorded" else copy.state)


def _reason_to_keep(copies: Manifest, copy: Copy) -> str:
    """Why ``copy`` must stay, or an empty string."""
    if not copies.is_own(copy):
        return "this machine did not make it"
    root = copies.place / copy.path
    if root.resolve() != root:
        return "it is outside the run's copies"
    if copy.removed_at:
        return ""
    if copy.state == "conflicts":
        return _conflicts_in_words(copy)
    if copy.state == "active" and copy.key == OF_RUN:
        return "its run has not ended"
    if copy.state not in (*MERGED, "recorded"):
        return "not merged: another copy was chosen" if copy.state == "kept" else "not merged"
    if not root.is_dir():
        return ""
    if snapshots_of(copies, copy).take() != copy.theirs:
        return f"changed after {_LAST_SEEN[copy.state]}"
    if copy.commit and has_own_commits(top_of(copies, copy), copy.commit):
        return "it has commits that are not on any branch"
    return ""


_LAST_SEEN = {"merged": "it was merged", "unchanged": "it was found unchanged", "recorded": "its run ended"}


def _conflicts_in_words(copy: Copy) -> str:
    paths = [conflict.path for conflict in copy.conflicts]
    more = f" and {len(paths) - _NAMED_CONFLICTS} more" if len(paths) > _NAMED_CONFLICTS else ""
    return f"its changes conflict: {', '.join(paths[:_NAMED_CONFLICTS])}{more}"


def remove_merged(manifest: Manifest) -> None:
    """Remove the copies that were merged, as `collect` does, at the end of a run that nobody resumes.

    Raises StorageError.
    """
    for copy in _existing(manifest):
        if copy.state in MERGED and not _reason_to_keep(manifest, copy):
            _remove(manifest, copy)


def _remove(manifest: Manifest, copy: Copy) -> None:
    """Remove the files of the copy, whatever they are. Its record and its snapshots stay, as part of the history."""
    note_removal(manifest, copy)
    _remove_files(manifest, copy)


def note_removal(manifest: Manifest, copy: Copy) -> None:
    """Record that the copy is being removed, before any of it is."""
    manifest.change(copy.key, removed_at=copy.removed_at or datetime.now(UTC).isoformat(timespec="milliseconds"))


def clear(copies: Manifest, copy: Copy) -> None:
    """Delete what exists of the copy, its snapshots as well unless they are the run's. Raises StorageError."""
    _remove_files(copies, copy)
    if copy.key != OF_RUN:
        delete_folder(CopyPaths(copies, copy.key).snapshots)


def _remove_files(copies: Manifest, copy: Copy) -> None:
    """Delete the copy's files, complete or not, and its worktree in the user's repository. Raises StorageError."""
    places, top = CopyPaths(copies, copy.key), top_of(copies, copy)
    delete_folder(top)
    if copy.repository and copies.is_own(copy):
        forget_worktree(Path(copy.repository), top)
    for path in (places.copy, places.scratch):
        delete_folder(path)


def delete_folder(path: Path) -> None:
    """Delete ``path`` with its contents, if it exists. Raises StorageError."""
    try:
        if path.is_symlink():
            path.unlink()
        elif path.exists():
            for folder in _closed_folders(path):
                folder.chmod(stat.S_IRWXU)
            shutil.rmtree(path)
    except OSError as error:
        raise StorageError(f"{error.filename or path} cannot be deleted: {error.strerror}") from error


def _closed_folders(path: Path) -> Iterator[Path]:
    """The folders from which nothing can be deleted, each before its subfolders."""
    for parent, names, _ in os.walk(path):
        for folder in (Path(parent, name) for name in names):
            if not folder.is_symlink() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                yield folder
