"""``manifest.json``: the copies of the workspace that a run made, where their files are, and the state of each.

The records are in the run folder, the files in the user's state folder: tools that walk the project (test runners, type
checkers, linters) would also find a copy inside it. Workers keep both together, because their folders are not projects.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from threading import Lock
from typing import Any, Literal

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.atomic import make_folder, storage_errors, write_bytes, write_text
from codex_multi_role.host.user_cache import is_noted, make_private, note, user_state
from codex_multi_role.workspace.merging import Conflict
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.snapshots import Snapshots

MANIFEST = "manifest.json"
OWNER = "owner"
"""The file, beside the files of a run's copies, with the path of the folder of their records."""
OF_RUN = "run"
"""The key of the worktree that a run itself works in. Those of its units have a dot."""
_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
_KEY = re.compile(f"{_NAME}(/{_NAME})*")  # the key of a called flow's unit is below the caller's

Kind = Literal["worktree", "copy"]
State = Literal["active", "unchanged", "merged", "conflicts", "kept", "recorded"]


@dataclass(frozen=True, kw_only=True)
class Copy:
    """One copy of the workspace. ``path``: its root below the manifest's `place`; ``base``: the tree it was made from.

    The worktree of the run itself may be on a ``branch``. It is ``recorded`` once the run has ended: ``theirs`` is the
    tree at its end, which the run's own snapshots include.

    A worktree is at ``commit`` of ``repository``, the git folder that it shares. ``left_out`` are the folders that its
    snapshots exclude, ``nested`` the repositories in the workspace, which are empty folders in the copy. ``theirs``,
    ``paths`` and ``conflicts`` are known after a merge: the copy's tree at that time, the paths changed in the
    workspace, and those that were not; ``before`` and ``after`` are the workspace's trees then, if it was changed.
    """

    key: str
    path: str
    kind: Kind
    base: str
    repository: str | None
    commit: str | None
    left_out: tuple[str, ...]
    nested: tuple[str, ...]
    created_at: str
    state: State = "active"
    theirs: str = ""
    paths: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    before: str = ""
    after: str = ""
    removed_at: str | None = None
    branch: str = ""


class CopyPaths:
    """The paths of everything about the copy ``key`` of a run: records, and its files. Raises UsageError."""

    def __init__(self, copies: Manifest, key: str) -> None:
        self.own = copies.folder / key
        self.snapshots = repository_of(copies.folder, key)
        self.copy = copies.place / key / "copy"
        self.scratch = copies.place / key / "scratch"
        self.plan = self.own / "merge.json"
        self.patch = self.own / "changes.patch"


def repository_of(folder: Path, key: str) -> Path:
    """The private git repository of the copy ``key``, whose records are in ``folder``. Raises UsageError."""
    if not _KEY.fullmatch(key) or key == MANIFEST:
        raise UsageError(f"'{key}' cannot name a copy of the workspace", "Use letters, digits, '_', '-' and '.'.")
    return folder.parent / ".snapshots" if key == OF_RUN else folder / key / "snapshots.git"


def top_of(copies: Manifest, copy: Copy) -> Path:
    """The top folder of the worktree that contains ``copy``; for a plain folder its root."""
    own = CopyPaths(copies, copy.key).copy
    return own / (copies.place / copy.path).relative_to(own).parts[0]


def workspace_of(copies: Manifest, copy: Copy) -> Workspace:
    """The copy as a workspace, without the folders that the original excludes. Raises StorageError."""
    root = copies.place / copy.path
    if not root.is_dir():
        raise StorageError(f"the copy {root} of the workspace is missing", "Was it removed by hand, or by `gc`?")
    return Workspace(root, tuple(root / below for below in copy.left_out))


def snapshots_of(copies: Manifest, copy: Copy) -> Snapshots:
    """The copy's snapshots, in a private repository that also has those of the workspace. Raises StorageError."""
    return Snapshots(repository_of(copies.folder, copy.key), workspace_of(copies, copy))


def lost_tree(copies: Manifest, copy: Copy) -> str:
    """The latest snapshot of a copy whose files are missing: deleted, or the run folder is at another place now."""
    repository = repository_of(copies.folder, copy.key)
    is_lost = repository.is_dir() and not (copies.place / copy.path).is_dir()
    return Snapshots(repository, Workspace(copies.folder)).latest() if is_lost else ""


class Manifest:
    """The copies of a run, with their records in ``folder`` and their files in ``place``; one writer at a time.

    Threads may share it. Raises StorageError.
    """

    def __init__(self, folder: Path, run_id: str = "") -> None:
        self.folder = folder.resolve()
        self.place = usual_place(self.folder)
        self._path = self.folder / MANIFEST
        self._lock = Lock()  # waits: for one small file
        self.run_id, self._copies = run_id, dict[str, Copy]()
        if self._path.exists():
            self._read()

    def __iter__(self) -> Iterator[Copy]:
        return iter(list(self._copies.values()))

    def find(self, key: str) -> Copy | None:
        return self._copies.get(key)

    def copy(self, key: str) -> Copy:
        """Raises StorageError if there is no such copy."""
        if found := self._copies.get(key):
            return found
        raise StorageError(
            f"{self._path} does not contain the copy {key}", "Was the run folder restored from an older state?"
        )

    def put(self, copy: Copy) -> Copy:
        """Note that this machine makes ``copy``, and record it on disk, then in memory."""
        with suppress(StorageError):  # a read-only home has no notes
            if not self.is_own(copy):
                note("owned", self._whose(copy))
        return self._record(copy)

    def is_own(self, copy: Copy) -> bool:
        """Whether this machine made ``copy``: else its record may name any place and any repository."""
        return is_noted("owned", self._whose(copy))

    def _whose(self, copy: Copy) -> list[object]:
        return [self.run_id, self.place / copy.path, copy.repository, copy.commit, copy.branch]

    def _record(self, copy: Copy) -> Copy:
        with self._lock:
            self._write({**self._copies, copy.key: copy})
        return copy

    def keep_files_here(self) -> None:
        """Let the files of all copies be in ``folder`` as well, because that is in no project."""
        if not self._copies:
            self.place = self.folder
            self._write({})

    def make_place(self) -> None:
        """Create ``place``, as `make_place` does."""
        if self.place != self.folder:
            make_place(self.place, self.folder)

    def _write(self, copies: dict[str, Copy]) -> None:
        listed = [asdict(each) for each in copies.values()]
        place = str(self.place) if self.place != self.folder else ""
        write_json(self._path, {"version": 1, "run_id": self.run_id, "place": place, "copies": listed})
        self._copies = copies

    def change(self, key: str, **values: Any) -> Copy:  # noqa: ANN401 - the fields of Copy
        return self._record(replace(self.copy(key), **values))

    def _read(self) -> None:
        try:
            content = json.loads(self._path.read_text())
            copies = [_copy(each) for each in content["copies"]]
            for copy in copies:
                repository_of(self.folder, copy.key)  # raises for a key that leads elsewhere
                _require_inside(copy)
            self.run_id, self._copies = content["run_id"], {copy.key: copy for copy in copies}
            self.place = self._place(content.get("place", ""))
        except (OSError, ValueError, TypeError, KeyError, UsageError) as error:
            hint = f"Save what you need from the copies in {self.place} and beside it, then delete both."
            raise StorageError(f"{self._path} cannot be read: {error}", hint) from error

    def _place(self, recorded: str) -> Path:
        """The ``recorded`` place, also after the run folder was moved; if it was copied, one of its own.

        If another machine recorded it, one of its own as well.
        """
        usual, self.place = self.place, Path(recorded) if recorded else self.folder
        if not recorded:
            return self.folder
        owner = owner_of(self.place) if any(map(self.is_own, self)) else None
        if owner is None or (owner != self.folder and (owner / MANIFEST).exists()):
            return usual
        make_place(self.place, self.folder)
        return self.place


def all_places() -> Path:
    """The folder with the files of the copies of all runs, and with the clones of batches."""
    return (user_state() / "copies").resolve()


def place_around(path: Path) -> Path | None:
    """The place of copies that ``path`` is in: a worktree of a run, or a clone of a batch."""
    return next((each for each in path.parents if each.parent == all_places()), None)


def make_place(place: Path, owner: Path) -> None:
    """Create ``place`` for the files of ``owner``: private, and removed by `gc` once that folder was deleted."""
    with storage_errors(place):
        make_private(place)
    if owner_of(place) != owner:
        write_bytes(place / OWNER, os.fsencode(owner))


def owner_of(place: Path) -> Path | None:
    """The folder with the records of the copies in ``place``; None if nothing says so."""
    mark = place / OWNER
    return Path(os.fsdecode(mark.read_bytes())) if mark.is_file() else None


def usual_place(folder: Path) -> Path:
    """Where files are whose records are in ``folder``: short, because paths have a maximum length."""
    return all_places() / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]


def _require_inside(copy: Copy) -> None:
    """Raise `ValueError` for a copy that leads elsewhere."""
    paths = [PurePath(path) for path in (copy.path, *copy.nested, *copy.left_out)]
    is_outside = any(each.is_absolute() or ".." in each.parts for each in paths)
    if is_outside or PurePath(copy.key, "copy") not in paths[0].parents:
        raise ValueError(f"the copy {copy.key} leads elsewhere")


def _copy(content: dict[str, Any]) -> Copy:
    conflicts = tuple(Conflict(**each) for each in content["conflicts"])
    lists = {name: tuple(content[name]) for name in ("left_out", "nested", "paths")}
    return Copy(**{**content, **lists, "conflicts": conflicts})


def write_json(path: Path, value: object) -> None:
    """Write indented JSON in one step; creates the folder. Raises StorageError."""
    make_folder(path.parent)
    write_text(path, json.dumps(value, indent=2) + "\n")
