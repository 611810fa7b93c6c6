"""The objects of a run's private git repositories, as packs of those that were not sent yet.

All of a repository's objects are sent, whatever refers to them: the states that turns, events and merges name are then
among them. Git never changes an object, so one that was sent is never looked at again.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from codex_multi_role.extensions.machines.store.pieces import capture
from codex_multi_role.extensions.machines.store.state_manifest import SavedFile
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.removal import delete_folder

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
