"""Copies of the workspace for roles that write at the same time: made from its present state, merged back, kept.

A copy holds what a snapshot of the workspace holds, uncommitted and untracked changes included. Caches are not copied,
nor what ``.gitignore`` names, except where the user's repository tracks it all the same or a role of this run wrote it.
In a git repository a copy is a detached worktree at the user's own commit, on which the changes lie uncommitted as they
do in the workspace; elsewhere, and where the repository ignores the workspace, it is a plain folder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Literal, cast

from codex_multi_role.workspace.copies import Copy, CopyPaths, Kind, State, snapshots_of, workspace_of
from codex_multi_role.workspace.copying import describe, fill, register
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.manifest import Manifest, write_json
from codex_multi_role.workspace.merging import Conflict, Plan, plan_merge
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.removal import clear, delete_folder, remove
from codex_multi_role.workspace.snapshots import Snapshots
from codex_multi_role.workspace.trees import check_out
from codex_multi_role.workspace.writing import carry_out

Status = Literal["merged", "unchanged", "conflicts"]


@dataclass(frozen=True)
class IsolatedWorkspace:
    """A copy of the workspace, made from the snapshot ``base``. ``snapshots`` are its own, and know that one."""

    key: str
    kind: Kind
    workspace: Workspace
    snapshots: Snapshots
    base: str


@dataclass(frozen=True)
class MergeResult:
    """What a merge did. ``paths`` were changed in the workspace, ``conflicts`` were left as they are there.

    All that the copy changed since it was made, conflicts included, is in the copy's ``changes.patch``, as
    `Snapshots.patch` makes it.
    """

    status: Status
    paths: tuple[str, ...]
    conflicts: tuple[Conflict, ...]

    def as_json(self) -> dict[str, Any]:
        """For a flow to route on: ``{status, paths: [..], conflicts: [{path, kind}]}``."""
        conflicts = [conflict.as_json() for conflict in self.conflicts]
        return {"status": self.status, "paths": list(self.paths), "conflicts": conflicts}


class Worktrees:
    """The copies that one run made of its workspace, in ``folder`` (``runs/<id>/worktrees``). Threads may share it.

    A copy goes by a ``key``, ``<step>.<visit>.<index>``. Every method raises UsageError where there is no git,
    StorageError when it or the disk fails. `create` and `merge` read or write the workspace: no turn may be writing
    files there meanwhile.
    """

    def __init__(self, folder: Path, workspace: Workspace, snapshots: Snapshots, run_id: str) -> None:
        self._workspace = workspace
        self._snapshots = snapshots
        self._manifest = Manifest(folder, run_id)
        self._folder = self._manifest.folder
        self._open: dict[str, IsolatedWorkspace] = {}
        self._lock = RLock()

    def create(self, key: str) -> IsolatedWorkspace:
        """A copy of the workspace as it is now.

        The copy that ``key`` named before, in this process or a killed one, is made again as it was at first, unless
        something has come of it: a merge that was begun, or `keep`.
        """
        with self._lock:
            copy = self._manifest.find(key)
            if copy is None:
                copy = self._manifest.put(describe(self._folder, key, self._workspace, self._snapshots))
            elif copy.state != "active" or CopyPaths(self._folder, key).plan.exists():
                return self.open(key)
            elif copy.removed_at:
                copy = self._manifest.change(key, removed_at=None)
            self._open.pop(key, None)
            clear(self._folder, copy)
            register(self._folder, copy)
        fill(self._folder, copy, self._workspace, self._snapshots)
        return self.open(key)

    def open(self, key: str) -> IsolatedWorkspace:
        """The copy as it is."""
        with self._lock:
            if key not in self._open:
                copy = self._manifest.copy(key)
                self._open[key] = IsolatedWorkspace(
                    key=key,
                    kind=copy.kind,
                    workspace=replace(workspace_of(self._folder, copy), steering=self._workspace.steering),
                    snapshots=snapshots_of(self._folder, copy),
                    base=copy.base,
                )
            return self._open[key]

    def keep(self, key: str) -> None:
        """Nothing of the copy is wanted in the workspace; it stays to be looked at, and ``gc`` says so."""
        with self._lock:
            if self._manifest.copy(key).state == "active":
                self._manifest.change(key, state="kept")

    def discard(self, key: str) -> None:
        """Remove the copy, whatever is in it."""
        with self._lock:
            self._open.pop(key, None)
            remove(self._manifest, self._manifest.copy(key))

    def merge(self, key: str) -> MergeResult:
        """Bring what the copy changed into the workspace, file by file; conflicting files are left as they are there.

        Done once: afterwards, and after a kill, the same result comes back.
        """
        with self._lock:
            copy = self._manifest.copy(key)
            if copy.state in ("active", "kept"):
                copy = self._merged(copy)
            return MergeResult(cast(Status, copy.state), copy.paths, copy.conflicts)

    def _merged(self, copy: Copy) -> Copy:
        plan = Plan.read(CopyPaths(self._folder, copy.key).plan) or self._planned(copy)
        paths, conflicts = self._carried_out(copy, plan)
        state: State = "conflicts" if conflicts else "unchanged" if plan.theirs == copy.base else "merged"
        outcome = {"theirs": plan.theirs, "paths": tuple(paths), "conflicts": tuple(conflicts)}
        return self._manifest.change(copy.key, state=state, **outcome)

    def _planned(self, copy: Copy) -> Plan:
        """The plan, on disk before anything of it is done: it must not be made from a half-merged workspace."""
        places, isolated = CopyPaths(self._folder, copy.key), self.open(copy.key)
        theirs = isolated.snapshots.take()
        plan = Plan(theirs, {}, ())
        if theirs != copy.base:
            changed = isolated.snapshots.changed_paths(copy.base, theirs)
            plain = [path for path in changed if not (self._workspace.root / path).is_symlink()]
            ours = self._snapshots.with_ignored(self._snapshots.take(), plain)
            delete_folder(places.scratch)
            plan = plan_merge(self._git(copy), copy.base, ours, theirs, places.scratch)
            # Named as in the workspace, which may lie elsewhere in a repository than the copy.
            Snapshots(places.snapshots, self._workspace).write_patch(copy.base, theirs, places.patch)
        write_json(places.plan, plan.as_json())
        return plan

    def _carried_out(self, copy: Copy, plan: Plan) -> tuple[list[str], list[Conflict]]:
        scratch = CopyPaths(self._folder, copy.key).scratch
        delete_folder(scratch)
        check_out(self._git(copy), {path: after for path, (_, after) in plan.changes.items() if after}, scratch)
        paths, conflicts = carry_out(self._workspace, plan, scratch)
        # Not the links: a snapshot takes a forced path for the file that it leads to.
        written = [path for path in paths if (after := plan.changes[path][1]) and after.is_file]
        if written:
            self._snapshots.take(force=written)
        delete_folder(scratch)
        return paths, conflicts

    def _git(self, copy: Copy) -> Git:
        return Git(CopyPaths(self._folder, copy.key).snapshots, self._folder / copy.path)
