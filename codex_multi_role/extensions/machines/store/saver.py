"""Saves a run folder, again and again while its run works: each time what changed, and a manifest of all of it."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.pieces import capture
from codex_multi_role.extensions.machines.store.saved_files import Selection, Signature, select
from codex_multi_role.extensions.machines.store.state_manifest import (
    MAX_CHAIN,
    SavedFile,
    StateManifest,
    read_states,
    write_manifest,
)
from codex_multi_role.extensions.machines.store.store import Store, in_parallel
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.manifest import repository_of
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.worktrees import Trees

_FOLDER, _REST = re.compile("[0-9a-f]{2}"), re.compile("[0-9a-f]{38}|[0-9a-f]{62}")
_OPTIONS = ("--quiet", "--window=0", "--compression=1", "--threads=1")
"""Without a search for similar objects: versions of one file rarely meet in one pack."""
_UNSENT = "unsent-"
"""The folder in a repository in which a pack is made."""


class ObjectPacks:
    """Packs of the loose objects of one repository, named ``path`` in the run folder.

    ``files``: the packs sent so far, as files of the repository that exist only in the store.
    """

    def __init__(self, store: Store, folder: Path, path: str) -> None:
        self.files: dict[str, SavedFile] = {}
        self._store = store
        self._git_dir = folder / path
        self._path = path
        self._sent: set[str] = set()
        for left_by_a_kill in self._git_dir.glob(f"{_UNSENT}*"):
            delete_folder(left_by_a_kill)

    def send_new(self) -> None:
        """Send what is new. Raises `StorageError`."""
        new = _loose_objects(self._git_dir / "objects") - self._sent
        if not new:
            return
        # Git moves the finished pack to its place, which another file system, as the temporary folder may be, refuses.
        with storage_errors(self._git_dir), tempfile.TemporaryDirectory(prefix=_UNSENT, dir=self._git_dir) as name:
            listed = "".join(f"{each}\n" for each in sorted(new)).encode()
            git = Git(self._git_dir.absolute(), self._git_dir.absolute())
            git.run("pack-objects", *_OPTIONS, f"{name}/pack", stdin=listed)
            for made in sorted(Path(name).iterdir()):
                self.files[f"{self._path}/objects/pack/{made.name}"] = capture(self._store, made, None)[1]
        self._sent |= new


def _loose_objects(folder: Path) -> set[str]:
    """The ids of the objects that have files of their own; one that is being written has another name."""
    found = set()
    with storage_errors(folder):
        for place in os.listdir(folder) if folder.is_dir() else ():  # noqa: PTH208 - names are all that is needed
            if _FOLDER.fullmatch(place):
                found |= {place + rest for rest in os.listdir(folder / place) if _REST.fullmatch(rest)}  # noqa: PTH208
    return found


PASSES = 5
UNSETTLED_NS = 100_000_000
"""A file changed so shortly before it was read may change again without a new time: it is read again."""
NEVER_READ = Signature(-1, -1, -1, -1)


class RunSaver:
    """Saves the run in ``folder`` for one ``attempt``. ``earlier``: the manifest it continues from, or empty.

    Threads may share it: while one saves, others wait, and one further save then serves all of them. ``publish`` gets
    the name of each manifest, in order, before any `save` that it serves returns; what it raises, `save` raises.
    """

    def __init__(
        self,
        store: Store,
        folder: RunFolder,
        attempt: int,
        earlier: str = "",
        publish: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._folder = folder
        self._attempt = attempt
        self._publish = publish
        self._known: dict[str, tuple[Signature, SavedFile]] = {}
        self._saved: dict[str, SavedFile] = {}
        self._chain: tuple[str, ...] = ()
        self._trees: Trees = {}
        self._unsettled: set[str] = set()
        self._packs: dict[str, ObjectPacks] = {}
        self._number = 0
        self._saving, self._counting = Lock(), Lock()  # waits: for one save, ended by REQUEST_SECONDS a request
        self._asked = self._served = 0
        if earlier:
            self._continue_from(earlier)

    def save(self, take_trees: Callable[[], Trees] | None = None) -> str:
        """Save the run as it is now, or a little later; returns the name of the manifest. Raises `StorageError`.

        ``take_trees`` snapshots the workspace; without it, the last trees are named again. It is called after the run
        folder was read: a turn that counts as finished then has its files in the snapshot.
        """
        with self._counting:
            self._asked += 1
            mine = self._asked
        with self._saving:
            if self._served < mine:
                with self._counting:
                    served = self._asked
                self._save(take_trees)
                self._served = served
            return self._chain[-1]

    def _continue_from(self, earlier: str) -> None:
        latest, self._saved = read_states(self._store, earlier)
        self._known = {path: (NEVER_READ, file) for path, file in self._saved.items()}
        self._chain = (*latest.after, earlier)
        self._trees = {"": latest.tree, **latest.copies}

    def _save(self, take_trees: Callable[[], Trees] | None) -> None:
        selection = self._capture_all(take_trees)
        packed = self._pack(selection.repositories)
        files = {path: file for path, (_, file) in self._known.items()} | packed
        if len(self._chain) >= MAX_CHAIN:
            self._chain, self._saved = (), {}
        deleted = dict.fromkeys(self._saved.keys() - files.keys())
        changed = {path: file for path, file in files.items() if not _is_same(self._saved.get(path), file)}
        manifest = StateManifest(
            run_id=self._folder.run_id,
            attempt=self._attempt,
            tree=self._trees.get("", ""),
            copies={key: tree for key, tree in self._trees.items() if key},
            after=self._chain,
            files={**changed, **deleted},
            empty=selection.empty,
        )
        self._number += 1
        self._chain = (*self._chain, write_manifest(self._store, self._number, manifest))
        self._saved = files
        self._publish(self._chain[-1])

    def _capture_all(self, take_trees: Callable[[], Trees] | None) -> Selection:
        """Read the folder, then snapshot the workspace: again if that created a repository, which is to be read too."""
        for _ in range(PASSES):
            selection = self._capture_stable()
            taken = take_trees() if take_trees is not None else {}
            if all(self._repository_of(key) in selection.repositories for key, tree in taken.items() if tree):
                break
        trees = {**self._trees, **taken}
        self._trees = {key: tree for key, tree in trees.items() if self._repository_of(key) in selection.repositories}
        return selection

    def _repository_of(self, key: str) -> str:
        folder = self._folder
        git_dir = repository_of(folder.worktrees_path, key) if key else folder.snapshots_path
        return git_dir.relative_to(folder.path).as_posix()

    def _capture_stable(self) -> Selection:
        """Read what changed until no file was added or replaced meanwhile: then all are as they were at one moment.

        Files that only grow do not count. If files keep being replaced, the last pass reads only those that were added,
        so that no file refers to one that is missing.
        """
        found = select(self._folder.path)
        self._capture(path for path in found.files if self._may_have_changed(path, found))
        for passes_left in reversed(range(PASSES)):
            before, found = found.files, select(self._folder.path)
            added = found.files.keys() - before.keys()
            replaced = {path for path in found.files.keys() - added if found.files[path].inode != before[path].inode}
            if not added and not replaced and found.files.keys() == before.keys():
                break
            self._capture(added | replaced if passes_left else added)
        self._known = {path: known for path, known in self._known.items() if path in found.files}
        return found

    def _may_have_changed(self, path: str, found: Selection) -> bool:
        known = self._known.get(path)
        return known is None or known[0] != found.files[path] or path in self._unsettled

    def _capture(self, paths: Iterable[str]) -> None:
        wanted = sorted(paths)
        read = zip(wanted, in_parallel(self._captured, wanted), strict=True)
        self._known |= {path: known for path, known in read if known is not None}

    def _captured(self, path: str) -> tuple[Signature, SavedFile] | None:
        """The file as it is now; None if it was deleted."""
        began = time.time_ns()
        try:
            known = capture(self._store, self._folder.path / path, self._known.get(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{self._folder.path / path} cannot be read: {error.strerror}") from error
        is_unsettled = known[0].mtime_ns > began - UNSETTLED_NS
        (self._unsettled.add if is_unsettled else self._unsettled.discard)(path)
        return known

    def _pack(self, repositories: Iterable[str]) -> dict[str, SavedFile]:
        """Send the new objects of the repositories; returns all packs of them, as files."""
        folder = self._folder.path
        self._packs = {path: self._packs.get(path) or ObjectPacks(self._store, folder, path) for path in repositories}
        for packs in self._packs.values():
            packs.send_new()
        return {path: file for packs in self._packs.values() for path, file in packs.files.items()}


def _is_same(saved: SavedFile | None, now: SavedFile) -> bool:
    return saved is now or saved == now
