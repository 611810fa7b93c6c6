"""Copies of the workspace for roles that write at the same time: made from its current state, merged back, or kept.

A copy holds what a snapshot of the workspace holds, including uncommitted and untracked changes. Caches and files that
match ``.gitignore`` are not copied, unless the user's repository tracks them or a role of this run wrote them. In a git
repository a copy is a detached worktree at the user's own commit, and the changes are uncommitted as in the workspace.
Elsewhere, and if the repository ignores the workspace, it is a plain folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Literal, cast

from codex_multi_role.host.atomic import make_folder
from codex_multi_role.workspace.copying import copy_surroundings, describe, fill, register
from codex_multi_role.workspace.git import Git, RecordedGit
from codex_multi_role.workspace.manifest import (
    Copy,
    CopyPaths,
    Kind,
    Manifest,
    State,
    lost_tree,
    snapshots_of,
    top_of,
    workspace_of,
    write_json,
)
from codex_multi_role.workspace.merging import Conflict, Plan, plan_merge
from codex_multi_role.workspace.paths import Workspace
from codex_multi_role.workspace.preparation import Preparation
from codex_multi_role.workspace.removal import clear, delete_folder, note_removal, remove_merged
from codex_multi_role.workspace.repository import Repository, forget_worktree
from codex_multi_role.workspace.snapshots import Snapshots
from codex_multi_role.workspace.trees import check_out
from codex_multi_role.workspace.writing import carry_out

NEEDED = ("active", "kept", "conflicts")
"""The states of copies that a run still needs after it moved to another machine."""


def at_new_place(copy: Copy, repository: Repository | None) -> Copy:
    """A worktree of the repository at the new place of the run if that has the commit, otherwise a plain folder."""
    if copy.repository and copy.commit and repository and repository.has(copy.commit):
        return replace(copy, repository=str(repository.git_dir))
    return replace(copy, kind="copy", repository=None, commit=None)


def fill_again(copies: Manifest, copy: Copy, workspace: Workspace, tree: str) -> Copy:
    """Unlike a new copy, this one keeps its repository, and gets the files that it had last."""
    copy = copies.put(at_new_place(copy, Repository.around(workspace.root)))
    root, top = copies.place / copy.path, top_of(copies, copy)
    delete_folder(CopyPaths(copies, copy.key).copy)
    if copy.repository:
        forget_worktree(Path(copy.repository), top)
    register(copies, copy)
    make_folder(root)
    snapshots = snapshots_of(copies, copy)
    snapshots.leave_out(())  # it must be prepared again
    snapshots.fill(tree)
    for path in copy.nested:
        make_folder(root / path)
    if copy.repository:
        copy_surroundings(top, workspace)
    return copy


Trees = Mapping[str, str]
"""Snapshots: of copies by their keys, and of the workspace itself with the key ""."""
Status = Literal["merged", "unchanged", "conflicts"]


@dataclass(frozen=True)
class IsolatedWorkspace:
    """A copy of the workspace, made from the snapshot ``base``, which its own ``snapshots`` include."""

    key: str
    kind: Kind
    workspace: Workspace
    snapshots: Snapshots
    base: str


@dataclass(frozen=True)
class MergeResult:
    """The result of a merge. ``paths`` were changed in the workspace, ``conflicts`` were left as they are there.

    Everything the copy changed since it was made, including conflicts, is in its ``changes.patch``, a
    `Snapshots.patch`.
    """

    status: Status
    paths: tuple[str, ...]
    conflicts: tuple[Conflict, ...]

    def as_json(self) -> dict[str, Any]:
        """For a flow to route on: ``{status, paths: [..], conflicts: [{path, kind}]}``."""
        conflicts = [conflict.as_json() for conflict in self.conflicts]
        return {"status": self.status, "paths": list(self.paths), "conflicts": conflicts}


class Worktrees:
    """One run's copies of its workspace, recorded in ``folder`` (``runs/<id>/worktrees``). Threads may share it.

    A copy's ``key`` is ``<step>.<visit>.<index>``. Every method raises UsageError if git is missing, StorageError if
    git or the disk fails. `create` and `merge` read or write the workspace: no turn may write files there meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Workspace,
        snapshots: Snapshots,
        run_id: str,
        preparation: Preparation | None = None,
    ) -> None:
        self._workspace = workspace
        self._snapshots = snapshots
        self._manifest = Manifest(folder, run_id)
        self._open: dict[str, IsolatedWorkspace] = {}
        self._preparation = preparation
        self._lock = RLock()  # waits: for calls of git, ended by GIT_SECONDS each

    def create(self, key: str) -> IsolatedWorkspace:
        """Create a copy of the current workspace.

        An earlier copy with this ``key``, from this process or a killed one, is recreated as it was at first, unless a
        merge of it was started or `keep` was called.
        """
        with self._lock:
            copy = self._manifest.find(key)
            if copy is None:
                copy = self._manifest.put(describe(self._manifest, key, self._workspace, self._snapshots))
            elif copy.state != "active" or CopyPaths(self._manifest, key).plan.exists():
                return self.open(key)
            else:
                active = replace(copy, removed_at=None)
                copy = self._manifest.put(at_new_place(active, Repository.around(self._workspace.root)))
            self._open.pop(key, None)
            clear(self._manifest, copy)
            register(self._manifest, copy)
        fill(self._manifest, copy, self._workspace, self._snapshots)
        return self.open(key)

    def prepare(self, key: str) -> list[str]:
        """Prepare a copy before anybody works in it, unless that has been done; returns warnings.

        Raises what `Preparation.prepare` raises.
        """
        if self._preparation is None:
            return []
        copy = self.open(key)
        return self._preparation.prepare(copy.workspace, copy.snapshots, CopyPaths(self._manifest, key).own)

    def open(self, key: str) -> IsolatedWorkspace:
        """Return an existing copy, unchanged; with its last recorded files if they are missing."""
        with self._lock:
            if key not in self._open:
                copy = self._manifest.copy(key)
                if copy.state in NEEDED and (last := lost_tree(self._manifest, copy)):
                    copy = fill_again(self._manifest, copy, self._workspace, last)
                self._open[key] = IsolatedWorkspace(
                    key=key,
                    kind=copy.kind,
                    workspace=replace(workspace_of(self._manifest, copy), steering=self._workspace.steering),
                    snapshots=snapshots_of(self._manifest, copy),
                    base=copy.base,
                )
            return self._open[key]

    def trees(self) -> Trees:
        """Snapshot the copies that this process works in; returns the trees by key."""
        with self._lock:
            return {key: each.snapshots.take() for key, each in self._open.items() if each.workspace.root.is_dir()}

    def keep(self, key: str) -> None:
        """Keep the copy for inspection without merging any of it; ``gc`` reports it."""
        with self._lock:
            if self._manifest.copy(key).state == "active":
                self._manifest.change(key, state="kept")

    def discard(self, key: str) -> None:
        """Remove the copy, if there is one, and those of the flow that it calls, whatever they contain."""
        with self._lock:
            for copy in [each for each in self._manifest if f"{each.key}/".startswith(f"{key}/")]:
                self._open.pop(copy.key, None)
                note_removal(self._manifest, copy)
                clear(self._manifest, copy)

    def remove_merged(self) -> None:
        """Remove what is no longer needed after a success: the files of merged copies, and git's entries of them."""
        with self._lock:
            self._open.clear()
            remove_merged(self._manifest)

    def merge(self, key: str) -> MergeResult:
        """Merge the copy's changes into the workspace, file by file; conflicting files stay as they are there.

        Done only once: later calls, even after a kill, return the same result.
        """
        with self._lock:
            copy = self._manifest.copy(key)
            if copy.state in ("active", "kept"):
                copy = self._merged(copy)
            return MergeResult(cast(Status, copy.state), copy.paths, copy.conflicts)

    def _merged(self, copy: Copy) -> Copy:
        plan = Plan.read(CopyPaths(self._manifest, copy.key).plan) or self._stored_plan(copy)
        paths, conflicts, after = self._carry_out(copy, plan)
        state: State = "conflicts" if conflicts else "unchanged" if plan.theirs == copy.base else "merged"
        outcome = {"theirs": plan.theirs, "paths": tuple(paths), "conflicts": tuple(conflicts)}
        outcome |= {"before": plan.ours, "after": after} if after else {}
        return self._manifest.change(copy.key, state=state, **outcome)

    def _stored_plan(self, copy: Copy) -> Plan:
        """The plan, stored before any of it is carried out: it must not be made from a half-merged workspace."""
        places, isolated = CopyPaths(self._manifest, copy.key), self.open(copy.key)
        theirs = isolated.snapshots.take()
        plan = Plan(theirs, {}, ())
        if theirs != copy.base:
            changed = isolated.snapshots.changed_paths(copy.base, theirs)
            plain = [path for path in changed if not (self._workspace.root / path).is_symlink()]
            ours = self._snapshots.with_ignored(self._snapshots.take(), plain)
            plan = plan_merge(self._git(copy), copy.base, ours, theirs)
            # Names are as in the workspace, whose place in a repository may differ from the copy's.
            Snapshots(places.snapshots, self._workspace).write_patch(copy.base, theirs, places.patch)
        write_json(places.plan, plan.as_json())
        return plan

    def _carry_out(self, copy: Copy, plan: Plan) -> tuple[list[str], list[Conflict], str]:
        """Returns the changed paths, all conflicts, and the workspace's tree after a change, otherwise nothing."""
        scratch = CopyPaths(self._manifest, copy.key).scratch
        delete_folder(scratch)
        check_out(self._git(copy), {path: entry for path, (_, entry) in plan.changes.items() if entry}, scratch)
        paths, conflicts = carry_out(self._workspace, plan, scratch)
        # Without symlinks, because a snapshot resolves a forced path to its target.
        written = [path for path in paths if (entry := plan.changes[path][1]) and entry.is_file]
        after = self._snapshots.take(force=written) if paths else ""
        delete_folder(scratch)
        return paths, conflicts, after

    def _git(self, copy: Copy) -> Git:
        return RecordedGit(CopyPaths(self._manifest, copy.key).snapshots, self._manifest.place / copy.path)
