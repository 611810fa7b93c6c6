"""Restores what was saved of a run: its folder, its workspace, or the parts that another run needs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from codex_multi_role.extensions.machines.store.saved_files import OWN_OF_A_MACHINE
from codex_multi_role.extensions.machines.store.state_manifest import SavedFile, read_piece, read_states
from codex_multi_role.extensions.machines.store.store import Store, in_parallel
from codex_multi_role.host.atomic import replacing, storage_errors
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.manifest import MANIFEST, OF_RUN, Manifest
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.worktrees import NEEDED, fill_again


@dataclass(frozen=True)
class SavedState:
    """A saved state: the snapshot ``tree`` of the workspace, those of its ``copies`` by key, and the ``files``."""

    run_id: str
    attempt: int
    tree: str
    copies: Mapping[str, str]
    files: tuple[str, ...]


def read_saved(store: Store, manifest: str) -> SavedState:
    """What the manifest of that name contains, without restoring it. Raises `StorageError`."""
    return _read(store, manifest)[0]


def restore_run(store: Store, manifest: str, folder_path: Path) -> SavedState:
    """Make ``folder_path`` the run folder that ``manifest`` names; only what differs there is read from the store.

    Everything else in the folder is removed, except what belongs to this machine (`OWN_OF_A_MACHINE`). Nothing outside
    of the folder is written: symlinks in it are removed, not followed. Raises `StorageError`.
    """
    state, files, empty = _read(store, manifest)
    folders = {*empty, *(str(each) for path in (*files, *empty) for each in PurePosixPath(path).parents[:-1])}
    with storage_errors(folder_path):
        folder_path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder_path.resolve()
        _remove_others(folder, "", files.keys(), folders)
        for each in sorted(folders):
            (folder / each).mkdir(exist_ok=True)
    in_parallel(lambda path: _restore_file(store, folder / path, files[path]), files)
    return state


def fill_workspace(state: SavedState, folder: RunFolder, workspace: Path) -> None:
    """Make ``workspace``, such as a fresh clone, what the run had when ``state`` was saved, its copies included.

    ``folder``: the restored run folder. Files that git ignores stay as they are, because no snapshot has them. Without
    a saved tree, nothing in the run could change the workspace. Raises `UsageError`, `StorageError`.
    """
    place = Workspace.of_run(workspace.resolve(), folder.path.resolve())
    if state.tree:
        Snapshots(folder.snapshots_path, place).fill(state.tree)
    _move_copies(folder.worktrees_path, place, state.copies)


def _move_copies(folder: Path, workspace: Workspace, trees: Mapping[str, str]) -> None:
    """Make the files of the copies in ``folder`` again, at the new place ``workspace`` of the run.

    Only their private repositories, merge plans and patches travel with the run folder. A copy that may still be worked
    on or merged, or that waits for a person, gets its files back; of the others, such as merged ones, the record stays.
    ``trees``: the latest snapshots of the copies, by key. Raises UsageError, StorageError.
    """
    if not (folder / MANIFEST).exists():
        return
    manifest = Manifest(folder)
    for copy in manifest:
        tree = trees.get(copy.key) or copy.theirs
        if copy.state in NEEDED and copy.key != OF_RUN and tree and not copy.removed_at:
            fill_again(manifest, copy, workspace, tree)
        elif not copy.removed_at:
            manifest.change(copy.key, removed_at=datetime.now(UTC).isoformat(timespec="milliseconds"))


def _read(store: Store, name: str) -> tuple[SavedState, dict[str, SavedFile], tuple[str, ...]]:
    manifest, files = read_states(store, name)
    names = tuple(sorted(files))
    return SavedState(manifest.run_id, manifest.attempt, manifest.tree, manifest.copies, names), files, manifest.empty


def _remove_others(folder: Path, below: str, files: Collection[str], folders: Collection[str]) -> None:
    """Remove all below ``folder``/``below`` that is neither one of the ``files`` nor one of the ``folders``."""
    with os.scandir(folder / below) as entries:
        for entry in list(entries):
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                if path in folders:
                    _remove_others(folder, path, files, folders)
                else:
                    delete_folder(folder / path)
            elif path not in OWN_OF_A_MACHINE and not (path in files and entry.is_file(follow_symlinks=False)):
                (folder / path).unlink()


def _restore_file(store: Store, path: Path, file: SavedFile) -> None:
    """Write the file, with those pieces of the existing one that are as they should be."""
    with storage_errors(path):
        existing = path.open("rb") if path.exists() else BytesIO()
    with existing:
        if not _is_as_saved(existing, file):
            existing.seek(0)
            with replacing(path) as output:
                for content in _contents(store, existing, file):
                    with storage_errors(path):
                        output.write(content)
    with storage_errors(path):
        path.chmod(file.mode)


def _is_as_saved(existing: IO[bytes], file: SavedFile) -> bool:
    if isinstance(existing, BytesIO):
        return False
    if file.content is not None:
        return existing.read(file.size + 1) == file.content
    return all(piece.is_content(existing.read(piece.size)) for piece in file.pieces) and not existing.read(1)


def _contents(store: Store, existing: IO[bytes], file: SavedFile) -> Iterator[bytes]:
    if file.content is not None:
        yield file.content
    for piece in file.pieces:
        found = existing.read(piece.size)
        yield found if piece.is_content(found) else read_piece(store, piece)
