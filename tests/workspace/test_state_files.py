"""The files of a state are those that the user's git would add, whatever says so."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.repository import Repository
from codex_multi_role.workspace.state_files import patterns_in, state_files
from tests.support.workspaces import commit_all, git, write_files

pytestmark = pytest.mark.real

PARTS = ("a", "b", "app", "sub", "*", "a*", "?", "[ab]", "[!a]", "\\a", "**", "app one", "deep")
NAMES = ("a", "b", "x", "app", "deep", "app one", "sub")


def _pattern(rng: random.Random) -> str:
    body = "/".join(rng.choice(PARTS) for _ in range(rng.randint(1, 4)))
    return f"{rng.choice(('', '', '!'))}{rng.choice(('', '/'))}{body}{rng.choice(('', '', '/', ' ', '  '))}"


def _ignored(repository: Git, paths: list[str]) -> set[str]:
    named = "".join(f"{path}\0" for path in paths).encode()
    listed = repository.run("check-ignore", "--no-index", "-z", "--stdin", stdin=named, allowed=(0, 1)).stdout
    return set(listed.decode().split("\0")[:-1])


@pytest.mark.parametrize("seed", range(8))
def test_rules_mean_the_same_in_a_subfolder(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    below = "app one/sub"
    root = tmp_path / below
    root.mkdir(parents=True)
    git(tmp_path, "init", "-q")
    for place in (".git/info/exclude", ".gitignore", "app one/.gitignore"):
        (tmp_path / place).write_text("".join(f"{_pattern(rng)}\n" for _ in range(3)))
    repository = Repository.around(root)
    if repository is None:  # the rules ignore the folder itself
        assert _ignored(Git(tmp_path / ".git", tmp_path), [below])
        return
    paths = ["/".join(rng.choice(NAMES) for _ in range(rng.randint(1, 4))) for _ in range(200)]
    there = _ignored(repository.git, [f"{below}/{path}" for path in paths])
    private = Git(tmp_path / "private", root)
    private.initialize()
    found = state_files(root)
    assert found
    write_files(tmp_path / "private", {"info/exclude": "\n".join(found.ignored) + "\n"})
    assert _ignored(private, paths) == {path.removeprefix(f"{below}/") for path in there}


@pytest.mark.parametrize("content", ["fifo", "folder", "missing", "endless"])
def test_strange_file_with_rules_is_none(tmp_path: Path, content: str) -> None:
    exclude = tmp_path / "exclude"
    match content:
        case "fifo":
            os.mkfifo(exclude)
        case "folder":
            exclude.mkdir()
        case "endless":
            exclude.symlink_to("/dev/zero")
    assert patterns_in(exclude) == []


def test_plain_copy_and_fork_keep_the_rules(tmp_path: Path) -> None:
    """They are in no repository, but what the user's git ignores is in none of their states either."""
    root = tmp_path / "project"
    write_files(root, {"a.txt": "a\n"})
    commit_all(root)
    (root / ".git/info/exclude").write_text(".env\n")
    parent = Snapshots(tmp_path / "parent.git", Workspace(root))
    tree = parent.take()
    (tmp_path / "fork").mkdir()
    fork = Snapshots(tmp_path / "fork.git", Workspace(tmp_path / "fork"))
    fork.fill_from(tmp_path / "parent.git", tree)
    write_files(tmp_path / "fork", {".env": "TOKEN=1\n"})
    assert fork.take() == tree
