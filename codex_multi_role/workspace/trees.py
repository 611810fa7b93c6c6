"""Trees of a private repository, file by file: their differences, and writing their files to disk."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.host.atomic import make_folder, write_text
from codex_multi_role.host.unpacking import UnpackBudget, measure_trees
from codex_multi_role.workspace.git import Git

EXECUTABLE, SYMLINK, REPOSITORY = "100755", "120000", "160000"
NOBODY = "nobody <>"
WORKSPACE = UnpackBudget(max_bytes=16 * 1024**3, max_entries=2_000_000, max_depth=200, max_seconds=600.0)
"""Of the files of a clone, or of a workspace that comes from another machine."""
_NOTHING = "000000"


@dataclass(frozen=True)
class TreeEntry:
    """A file in a tree: git's mode and the id of its content."""

    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        return self.mode not in (SYMLINK, REPOSITORY)


Change = tuple[TreeEntry | None, TreeEntry | None]
"""A file before and after; None if it does not exist."""


def changes(git: Git, before: str, after: str) -> dict[str, Change]:
    """The files that differ between two trees; a rename is a deletion and an addition."""
    fields = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).stdout.split(b"\0")[:-1]
    return {os.fsdecode(path): _change(header.decode()) for header, path in zip(fields[::2], fields[1::2], strict=True)}


def _change(header: str) -> Change:
    mode, new_mode, oid, new_oid, _ = header.removeprefix(":").split()
    return (
        None if mode == _NOTHING else TreeEntry(mode, oid),
        None if new_mode == _NOTHING else TreeEntry(new_mode, new_oid),
    )


def paths_of(git: Git, tree: str) -> set[str]:
    """All files of ``tree``, including nested repositories."""
    return set(os.fsdecode(git.run("ls-tree", "-r", "-z", "--name-only", tree).stdout).split("\0")[:-1])


def text_of(git: Git, tree: str, path: str) -> str | None:
    """The text of a file of ``tree``; None without one."""
    found = git.run("cat-file", "blob", f"{tree}:{path}", allowed=(0, 128))
    return found.stdout.decode("utf-8", "replace") if found.returncode == 0 else None


def line_of(text: str, number: int) -> str:
    """The line with that number, from 1; empty if the text has fewer."""
    return dict(enumerate(text.split("\n"), start=1)).get(number, "")


def entries_of(git: Git, tree: str) -> dict[str, TreeEntry]:
    """All files of ``tree`` by path, in order, including nested repositories."""
    listed = os.fsdecode(git.run("ls-tree", "-r", "-z", tree).stdout).split("\0")[:-1]
    return {
        path: TreeEntry(mode, oid)
        for entry, path in (each.split("\t", 1) for each in listed)
        for mode, _, oid in [entry.split()]
    }


def measure_commit(git: Git, commit: str) -> None:
    """Raise `UnpackingRefused` if the files of ``commit``, or of a tree, exceed `WORKSPACE`. None such is nothing."""
    named = ("--verify", "--quiet", "--end-of-options", f"{commit}^{{tree}}")
    measure_trees(git.run, git.run("rev-parse", *named, allowed=range(256)).stdout.decode().split(), WORKSPACE)


def make_trees(git: Git, *sides: Sequence[TreeEntry]) -> list[str]:
    """A tree for each of ``sides``: its files, named by their numbers, in order."""
    trees = (
        "".join(f"{entry.mode} blob {entry.oid}\t{number:09}\n" for number, entry in enumerate(side)) for side in sides
    )
    return git.run("mktree", "--batch", stdin="\n".join(trees).encode()).stdout.decode().split()


def write_commit(git: Git, tree: str, parents: Sequence[str], who: str = NOBODY, at: int = 0, message: str = "") -> str:
    """Write a commit that no branch holds; ``who``: author and committer as git writes them, ``at``: seconds in UTC.

    Git takes the base of a merge, and where a line came from, from commits.
    """
    before = "".join(f"parent {each}\n" for each in parents)
    named = f"{who} {at} +0000"
    content = f"tree {tree}\n{before}author {named}\ncommitter {named}\n\n{message}"
    written = git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content.encode())
    return written.stdout.decode().strip()


def borrow_objects(git_dir: Path, repositories: Iterable[Path]) -> None:
    """Let the repository ``git_dir``, even an unfinished one, have the objects of others. Raises StorageError."""
    paths = (str((each / "objects").resolve()) for each in repositories)
    borrowed = "".join(f"{json.dumps(path, ensure_ascii=False)}\n" for path in paths)  # git reads quoted ones
    write_text(make_folder(git_dir / "objects" / "info") / "alternates", borrowed)


def repositories_in(git: Git, tree: str) -> list[str]:
    """The paths of repositories nested in ``tree``, which has their commits but not their files."""
    return [path for path, entry in entries_of(git, tree).items() if entry.mode == REPOSITORY]


def without(git: Git, tree: str, paths: Sequence[str]) -> str:
    """``tree`` without the files and folders ``paths``."""
    if not paths or not git.run("ls-tree", "-z", "--name-only", tree, "--", *paths).stdout:
        return tree
    index = git.git_dir / "index.without"
    git.run("read-tree", tree, index=index)
    literally = (f":(literal){path}" for path in paths)
    git.run("rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--", *literally, index=index)
    return git.run("write-tree", index=index).stdout.decode().strip()


def with_entries(git: Git, tree: str, entries: Mapping[str, TreeEntry | None]) -> str:
    """``tree`` with the files ``entries`` replaced or added; None removes one."""
    index = git.git_dir / "index.with"
    git.run("read-tree", tree, index=index)
    absent_first = sorted(entries.items(), key=lambda item: item[1] is not None)  # a file may replace a folder
    nothing = TreeEntry("0", "0" * len(tree))
    put_into(git, index, {path: entry or nothing for path, entry in absent_first})
    return git.run("write-tree", index=index).stdout.decode().strip()


def exchanged(git: Git, tree: str, one: str, other: str, only: Container[str] | None = None) -> str:
    """``tree`` with each file, or with ``only`` those, as in the tree ``other`` that is as in the tree ``one``."""
    if one == other or (tree == one and only is None):
        return other if tree == one else tree
    found, since = changes(git, one, other), changes(git, one, tree)
    chosen = {path: entry for path, (_, entry) in found.items() if path not in since and path in (only or found)}
    return with_entries(git, tree, chosen) if chosen else tree


def check_out(git: Git, entries: Mapping[str, TreeEntry], folder: Path) -> None:
    """Write ``entries`` below ``folder``, which need not exist, with their modes."""
    if not entries:
        return
    index = git.git_dir / f"index.{folder.name}"
    for left_by_a_kill in (index, index.with_name(f"{index.name}.lock")):
        left_by_a_kill.unlink(missing_ok=True)
    put_into(git, index, entries)
    git.run("checkout-index", "--all", "--force", "--quiet", f"--prefix={folder}/", index=index)
    index.unlink(missing_ok=True)


def put_into(git: Git, index: Path, entries: Mapping[str, TreeEntry]) -> None:
    """Put ``entries`` into the file ``index``."""
    lines = b"".join(
        f"{entry.mode} {entry.oid}\t".encode() + os.fsencode(path) + b"\0" for path, entry in entries.items()
    )
    git.run("update-index", "-z", "--index-info", stdin=lines, index=index)
