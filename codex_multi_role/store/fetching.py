"""Parts of a saved run that another run needs: a file, and the snapshots of its workspace."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from codex_multi_role.host.atomic import make_folder
from codex_multi_role.store.restoring import restore_file
from codex_multi_role.store.saved_files import SNAPSHOTS
from codex_multi_role.store.state_manifest import read_pieces, read_states
from codex_multi_role.store.store import Store, in_parallel

PACKS = f"{SNAPSHOTS}/objects/pack/"


def fetch_file(store: Store, manifest: str, path: str) -> bytes | None:
    """The content of a file in the run folder that ``manifest`` names; None if it has none. Raises `StorageError`."""
    file = read_states(store, manifest)[1].get(path)
    return None if file is None else b"".join(read_pieces(store, file))


def fetch_snapshots(store: Store, manifest: str, git_dir: Path, known: str = "") -> str:
    """Add the saved run's snapshots to the repository ``git_dir``; returns the latest one of its workspace.

    ``known``: a manifest whose snapshots the repository has. Raises `StorageError`.
    """
    latest, files = read_states(store, manifest)
    existing = read_states(store, known)[1] if known else {}
    new = sorted(path for path in files.keys() - existing.keys() if path.startswith(PACKS))
    folder = make_folder(git_dir / "objects" / "pack")
    for are_indexes in (False, True):  # git opens the pack of every index that it sees
        some = [path for path in new if path.endswith(".idx") is are_indexes]
        in_parallel(lambda path: restore_file(store, folder / PurePosixPath(path).name, files[path]), some)
    return latest.tree
