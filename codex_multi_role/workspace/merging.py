"""The three-way merge of a copy's changes into the workspace, file by file: planned on trees, carried out on disk.

Git merges only the files that the base and both sides have, all of them in one ``git merge-tree``. Given whole trees it
would follow renames, which cannot be turned off before git 2.50, and could then not leave a conflicting path alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.trees import (
    REPOSITORY,
    Change,
    TreeEntry,
    changes,
    entries_of,
    make_trees,
    paths_of,
    write_commit,
)

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


@dataclass(frozen=True)
class Conflict:
    """A path that was left unchanged in the workspace, and why."""

    path: str
    kind: Kind

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "kind": self.kind}


@dataclass(frozen=True)
class Plan:
    """What a merge does to the workspace: ``changes`` by path, and the ``conflicts``.

    ``theirs``: the copy's tree; ``ours``: the workspace's before the merge.
    """

    theirs: str
    changes: Mapping[str, Change]
    conflicts: tuple[Conflict, ...]
    ours: str = ""

    def as_json(self) -> dict[str, Any]:
        listed = [[path, *map(_entry_as_json, change)] for path, change in self.changes.items()]
        conflicts = [each.as_json() for each in self.conflicts]
        return {"theirs": self.theirs, "ours": self.ours, "changes": listed, "conflicts": conflicts}

    @classmethod
    def read(cls, path: Path) -> Plan | None:
        """The plan stored in ``path``, or None."""
        if not path.exists():
            return None
        plan = json.loads(path.read_text())
        planned = {name: (_entry_of(before), _entry_of(after)) for name, before, after in plan["changes"]}
        return cls(plan["theirs"], planned, tuple(Conflict(**each) for each in plan["conflicts"]), plan.get("ours", ""))


def _entry_as_json(entry: TreeEntry | None) -> list[str] | None:
    return [entry.mode, entry.oid] if entry else None


def _entry_of(value: list[str] | None) -> TreeEntry | None:
    return TreeEntry(*value) if value else None


def plan_merge(git: Git, base: str, ours: str, theirs: str) -> Plan:
    """Plan how to apply the changes from ``base`` to ``theirs`` to ``ours``; ``git`` must have all three trees.

    Raises StorageError.
    """
    here, there = changes(git, base, ours), changes(git, base, theirs)
    contents = _merge_contents(git, here, there)
    planned: dict[str, Change] = {}
    conflicts: dict[str, Kind] = {}
    for path, change in sorted(there.items()):
        merged = _merged(here.get(path), change, contents.get(path))
        if isinstance(merged, str):
            conflicts[path] = merged
        elif merged[0] != merged[1]:
            planned[path] = merged
    for path in _colliding(planned, paths_of(git, ours)):
        del planned[path]
        conflicts[path] = "file and folder"
    return Plan(theirs, planned, tuple(Conflict(path, kind) for path, kind in sorted(conflicts.items())), ours)


def _merged(here: Change | None, there: Change, content: TreeEntry | None) -> Change | Kind:
    """The change of one path in the workspace, before and after, or the reason why it conflicts."""
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
    return (ours, content) if content else "both modified"


def _merge_contents(git: Git, here: Mapping[str, Change], there: Mapping[str, Change]) -> dict[str, TreeEntry]:
    """The files that both sides changed and git can merge, in a tree of numbered files for each side."""
    both = {path: (here[path][0], here[path][1], there[path][1]) for path in here.keys() & there.keys()}
    files = {path: sides for path, sides in both.items() if all(side and side.is_file for side in sides)}
    if not files:
        return {}
    base, *trees = make_trees(git, *zip(*files.values(), strict=True))
    start = write_commit(git, base, [])
    commits = [write_commit(git, tree, [start]) for tree in trees]
    options = ("--write-tree", "--no-messages", "--name-only", "-z")
    merged, *listed = git.run("merge-tree", *options, *commits, allowed=(0, 1)).stdout.decode().split("\0")[:-1]
    entries, conflicts = entries_of(git, merged), set(listed)
    return {path: entries[name] for path, name in zip(files, entries, strict=True) if name not in conflicts}


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
