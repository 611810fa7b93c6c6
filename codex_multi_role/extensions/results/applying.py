"""Bring a result into a checkout: a three-way merge, file by file, that never overwrites what its user changed.

The plan is stored before any of it is carried out, and every file is replaced in one step: after a kill, another call
continues with the same plan.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from codex_multi_role.errors import RunBusy
from codex_multi_role.extensions.results.run_history import Result
from codex_multi_role.host.atomic import write_bytes, write_json
from codex_multi_role.workspace import Snapshots, Workspace, occupied
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.merging import Conflict, Plan, plan_merge
from codex_multi_role.workspace.removal import delete_folder
from codex_multi_role.workspace.trees import TreeEntry, borrow_objects, changes, check_out
from codex_multi_role.workspace.writing import carry_out

MARKABLE = ("both modified", "both added")
YOURS = "yours"
PLAN = "plan.json"
DIGEST_CHARACTERS = 16


@dataclass(frozen=True)
class Applied:
    """``paths`` were changed in the checkout, ``conflicts`` were not; those in ``marked`` have conflict markers."""

    paths: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    marked: tuple[str, ...] = ()


def apply_result(result: Result, workspace: Workspace, folder: Path, *, mark_conflicts: bool) -> Applied:
    """Merge ``result`` into ``workspace``; ``folder`` keeps what is needed until that is done.

    If a file conflicts, nothing is written; with ``mark_conflicts`` the others are, and texts that conflict get both
    versions between git's markers. Raises `RunBusy` if a run works there, `StorageError`.
    """
    with _alone(workspace):
        place = folder / hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:DIGEST_CHARACTERS]
        stored = Plan.read(place / PLAN)
        if stored is not None and stored.theirs == result.after:
            return _Merge(result, workspace, place).carry_out(stored)  # an earlier call was killed
        delete_folder(place)
        merge = _Merge(result, workspace, place)
        plan = merge.plan()
        if mark_conflicts:
            plan = merge.with_markers(plan)
        elif plan.conflicts:
            delete_folder(place)
            return Applied((), plan.conflicts)
        write_json(place / PLAN, plan.as_json())
        return merge.carry_out(plan)


@contextmanager
def _alone(workspace: Workspace) -> Iterator[None]:
    with occupied(workspace.root) as by_others:
        if by_others:
            raise RunBusy(f"a run is working in {workspace.root}", "Wait until it has ended, or apply elsewhere.")
        yield


class _Merge:
    """One merge: its private repository, which borrows the objects of the result's, is in ``place``."""

    def __init__(self, result: Result, workspace: Workspace, place: Path) -> None:
        self.result = result
        self._workspace = workspace
        self._place = place
        git_dir = place / "snapshots.git"
        borrow_objects(git_dir, [result.git_dir])
        self._snapshots = Snapshots(git_dir, workspace)

    @property
    def _git(self) -> Git:
        return self._snapshots.repository()

    def plan(self) -> Plan:
        base, theirs = self.result.before, self.result.after
        changed = changes(self._git, base, theirs)
        plain = [path for path in changed if not (self._workspace.root / path).is_symlink()]
        ours = self._snapshots.with_ignored(self._snapshots.take(), plain)
        return plan_merge(self._git, base, ours, theirs)

    def with_markers(self, plan: Plan) -> Plan:
        """The plan that also writes both versions of each text that conflicts into its file."""
        there = changes(self._git, self.result.before, self.result.after)
        here = changes(self._git, self.result.before, self._snapshots.take())
        marked = dict(plan.changes)
        for conflict in plan.conflicts:
            ours = here.get(conflict.path, (None, None))[1]
            base, theirs = there[conflict.path]
            if conflict.kind not in MARKABLE or not (ours and theirs and ours.is_file and theirs.is_file):
                continue
            if both := self._both(base, ours, theirs):
                marked[conflict.path] = (ours, both)
        return replace(plan, changes=marked)

    def _both(self, base: TreeEntry | None, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
        """A file with both versions between markers; None if git cannot merge it, because it is binary."""
        labels = (YOURS, "before the run", self.result.name)
        contents = [
            self._git.run("cat-file", "blob", each.oid).stdout if each else b"" for each in (ours, base, theirs)
        ]
        if all(marker in contents[0] for marker in (f"<<<<<<< {YOURS}".encode(), f">>>>>>> {labels[-1]}".encode())):
            return ours  # an earlier call marked it, and nobody has resolved it yet
        files = [str(self._place / name) for name in ("ours", "base", "theirs")]
        for file, content in zip(files, contents, strict=True):
            write_bytes(Path(file), content)
        options = [part for label in labels for part in ("-L", label)]
        merged = self._git.run("merge-file", "-p", *options, *files, allowed=range(256))
        if merged.returncode > 127 or not merged.stdout:
            return None
        oid = self._git.run("hash-object", "-w", "--stdin", stdin=merged.stdout).stdout.decode().strip()
        return TreeEntry(ours.mode, oid)

    def carry_out(self, plan: Plan) -> Applied:
        scratch = self._place / "scratch"
        delete_folder(scratch)
        check_out(self._git, {path: after for path, (_, after) in plan.changes.items() if after}, scratch)
        paths, conflicts = carry_out(self._workspace, plan, scratch)
        delete_folder(self._place)
        unresolved = {conflict.path for conflict in conflicts}
        marked = tuple(path for path in paths if path in unresolved)
        return Applied(tuple(path for path in paths if path not in unresolved), tuple(conflicts), marked)
