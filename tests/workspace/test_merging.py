"""Three-way merges of small random trees, against a merge of the same trees in plain Python."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.workspaces import KEY, Contents, contents, open_run

pytestmark = pytest.mark.real

NAMES = ("a", "b", "d", "d/a", "d/b", "e/f/g", "é \"'$*?[x]")
KINDS = st.tuples(st.sampled_from(["file", "executable", "link"]), st.sampled_from([b"1", b"2", b"\x00\xff", b"../up"]))


def _trees() -> st.SearchStrategy[Contents]:
    return st.dictionaries(st.sampled_from(NAMES), KINDS).map(_without_collisions)


def _without_collisions(tree: Contents) -> Contents:
    return {path: entry for path, entry in tree.items() if not any(path.startswith(f"{other}/") for other in tree)}


def _put(root: Path, tree: Contents) -> None:
    for entry in root.iterdir():
        if entry.name not in ("runs", ".git"):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    for path, (kind, content) in tree.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            place.symlink_to(os.fsdecode(content.replace(b"\0", b"0")))
        else:
            place.write_bytes(content)
            place.chmod(0o755 if kind == "executable" else 0o644)


def _one_side(path: str, base: Contents, ours: Contents, theirs: Contents) -> tuple[str, bytes] | str | None:
    """What results for ``path`` looked at alone: an entry, None, or ``conflict``."""
    was, here, there = base.get(path), ours.get(path), theirs.get(path)
    if there in (was, here):
        return here
    if here == was:
        return there
    if was and here and there and "link" not in (was[0], here[0], there[0]):
        contents_differ = was[1] not in (here[1], there[1]) and here[1] != there[1]
        if not contents_differ:
            kind = there[0] if here[0] == was[0] else here[0]
            return kind, there[1] if here[1] == was[1] else here[1]
    return "conflict"


@settings(max_examples=settings().max_examples // 8)
@given(base=_trees(), ours=_trees(), theirs=_trees())
def test_merge_applies_one_sided_changes_and_lists_conflicts(base: Contents, ours: Contents, theirs: Contents) -> None:
    """What both sides changed stays as it is in the workspace."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _put(root, base)
        worktrees = open_run(root)
        copy = worktrees.create(KEY).workspace.root
        assert contents(copy) == contents(root)
        base = contents(root)
        _put(root, ours)
        _put(copy, theirs)
        ours, theirs = contents(root), contents(copy)
        result = worktrees.merge(KEY)
        merged = contents(root)
        assert contents(copy) == theirs
    conflicts = {conflict.path: conflict.kind for conflict in result.conflicts}
    assert result.status == ("conflicts" if conflicts else "unchanged" if theirs == base else "merged")
    alone = {path: _one_side(path, base, ours, theirs) for path in {*base, *ours, *theirs}}
    assert {path for path in alone if alone[path] == "conflict"} == {
        path for path, kind in conflicts.items() if kind != "file and folder"
    }
    for path, entry in alone.items():
        assert merged.get(path) == (ours.get(path) if path in conflicts else entry)
    for path in (path for path, kind in conflicts.items() if kind == "file and folder"):
        assert _collides(path, alone, ours)
    assert set(result.paths) == {path for path in alone if merged.get(path) != ours.get(path)}


def _collides(path: str, alone: dict[str, tuple[str, bytes] | str | None], ours: Contents) -> bool:
    """Whether ``path``, or a folder above it, would be a file and a folder at once."""
    files = {each for each, entry in alone.items() if (ours.get(each) if entry == "conflict" else entry)}
    lineage = {path, *(path[:cut] for cut, letter in enumerate(path) if letter == "/")}
    return any(each.startswith(f"{above}/") for above in lineage & files for each in files)
