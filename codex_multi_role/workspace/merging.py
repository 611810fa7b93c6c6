"""The three-way merge of a copy's changes into the workspace, file by file: planned on trees, carried out on disk.

Renames are not followed: git's own merge moves files by similarity, and could then not leave a conflicting path alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import REPOSITORY, Change, TreeEntry, changes, check_out, paths_of

Kind = Literal[
    "both modified",
    "both added",
    "modified here, deleted in the copy",
    "deleted here, modified in the copy",
    "file and folder",
    "nested repository",
    "off limits",
    "changed meanwhile",
]
_NOT_MERGEABLE = 255


@dataclass(frozen=True)
class Conflict:
    """A path that was left unchanged in the workspace, and why."""

    path: str
    kind: Kind

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "kind": self.kind}


@dataclass(frozen=True)
class Plan:
    """What a merge does to the workspace: ``changes`` by path, and the ``conflicts``. ``theirs``: the copy's tree."""

    theirs: str
    changes: Mapping[str, Change]
    conflicts: tuple[Conflict, ...]

    def as_json(self) -> dict[str, Any]:
        listed = [[path, *map(_entry_as_json, change)] for path, change in self.changes.items()]
        return {"theirs": self.theirs, "changes": listed, "conflicts": [each.as_json() for each in self.conflicts]}

    @classmethod
    def read(cls, path: Path) -> Plan | None:
        """The plan stored in ``path``, or None."""
        if not path.exists():
            return None
        plan = json.loads(path.read_text())
        planned = {name: (_entry_of(before), _entry_of(after)) for name, before, after in plan["changes"]}
        return cls(plan["theirs"], planned, tuple(Conflict(**each) for each in plan["conflicts"]))


def _entry_as_json(entry: TreeEntry | None) -> list[str] | None:
    return [entry.mode, entry.oid] if entry else None


def _entry_of(value: list[str] | None) -> TreeEntry | None:
    return TreeEntry(*value) if value else None


def plan_merge(git: Git, base: str, ours: str, theirs: str, scratch: Path) -> Plan:
    """Plan how to apply the changes from ``base`` to ``theirs`` to ``ours``; ``git`` must have all three trees.

    ``scratch`` is a folder for the files that both sides changed. Raises StorageError.
    """
    here, there = changes(git, base, ours), changes(git, base, theirs)
    texts = _Texts(git, scratch, {path: here[path] for path in here.keys() & there.keys()}, there)
    planned: dict[str, Change] = {}
    conflicts: dict[str, Kind] = {}
    for path, change in sorted(there.items()):
        merged = texts.merged(path, here.get(path), change)
        if isinstance(merged, str):
            conflicts[path] = merged
        elif merged[0] != merged[1]:
            planned[path] = merged
    for path in _colliding(planned, paths_of(git, ours)):
        del planned[path]
        conflicts[path] = "file and folder"
    return Plan(theirs, planned, tuple(Conflict(path, kind) for path, kind in sorted(conflicts.items())))


def _colliding(planned: Mapping[str, Change], ours: set[str]) -> set[str]:
    """The changes that need a folder where a file stays, or vice versa, and those that go with them."""
    gone = {path for path, (_, after) in planned.items() if after is None}
    files = (ours | planned.keys()) - gone
    folders = {parent for path in files for parent in _parents(path)}
    both = files & folders
    return {path for path in planned if not both.isdisjoint((path, *_parents(path)))}


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


class _Texts:
    """Merges single files. Those that ``both`` sides changed are written out at once, for git to read."""

    def __init__(self, git: Git, scratch: Path, both: Mapping[str, Change], there: Mapping[str, Change]) -> None:
        self._git, self._scratch = git, scratch
        self._write("base", {path: base for path, (base, _) in both.items()})
        self._write("ours", {path: ours for path, (_, ours) in both.items()})
        self._write("theirs", {path: there[path][1] for path in both})

    def _write(self, side: str, entries: Mapping[str, TreeEntry | None]) -> None:
        files = {path: entry for path, entry in entries.items() if entry and entry.is_file}
        check_out(self._git, files, self._scratch / side)

    def merged(self, path: str, here: Change | None, there: Change) -> Change | Kind:
        """The change of ``path`` in the workspace, before and after, or the reason why it conflicts."""
        base, theirs = there
        ours = here[1] if here else base
        if any(entry is not None and entry.mode == REPOSITORY for entry in (base, ours, theirs)):
            return "nested repository"
        if here is None or ours == theirs:
            return (ours, theirs)
        if base is None:
            return "both added"
        if ours is None:
            return "deleted here, modified in the copy"
        if theirs is None:
            return "modified here, deleted in the copy"
        content = self._content(path, base, ours, theirs)
        return (ours, content) if content else "both modified"

    def _content(self, path: str, base: TreeEntry, ours: TreeEntry, theirs: TreeEntry) -> TreeEntry | None:
        if not (base.is_file and ours.is_file and theirs.is_file):
            return None
        mode = theirs.mode if ours.mode == base.mode else ours.mode
        if theirs.oid in (base.oid, ours.oid):
            return TreeEntry(mode, ours.oid)
        if ours.oid == base.oid:
            return TreeEntry(mode, theirs.oid)
        sides = [str(self._scratch / side / path) for side in ("ours", "base", "theirs")]
        done = self._git.run("merge-file", "--stdout", "--quiet", *sides, allowed=range(_NOT_MERGEABLE + 1))
        if done.returncode:
            return None
        return TreeEntry(mode, self._git.run("hash-object", "-w", "--stdin", stdin=done.stdout).stdout.decode().strip())
