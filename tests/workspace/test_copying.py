from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace import Snapshots, Workspace, apply_files
from tests.support.processes import killed_until_it_is_done
from tests.support.workspaces import (
    ARRANGEMENTS,
    KEY,
    alone,
    before_the_first_commit,
    contents,
    edit,
    files_of_git,
    fill,
    git,
    nested_root,
    open_run,
    part_of_a_repository,
    whole_repository,
    write_files,
    write_program,
)

pytestmark = pytest.mark.real

Arrange = Callable[[Path], None]


@pytest.mark.parametrize("arrange", ARRANGEMENTS)
def test_copy_is_the_workspace_as_it_is_now(arrange: Arrange, tmp_path: Path) -> None:
    root = nested_root(tmp_path)
    arrange(root)
    edit(root)
    copy = open_run(root).create(KEY)
    assert contents(copy.workspace.root) == contents(root)
    assert copy.kind == ("copy" if arrange is alone else "worktree")
    assert copy.workspace.root.name == "work"
    assert copy.snapshots.take() == copy.base


@pytest.mark.parametrize("arrange", [alone, part_of_a_repository])
def test_made_again_a_copy_is_as_it_was_at_first(arrange: Arrange, tmp_path: Path) -> None:
    root = nested_root(tmp_path)
    arrange(root)
    before = contents(root)
    copy = open_run(root).create(KEY)
    edit(copy.workspace.root)
    (copy.workspace.root / "x.local").write_text("ignored")
    (root / "mine.txt").write_text("written since")
    again = open_run(root).create(KEY)
    assert (again.workspace, again.base) == (copy.workspace, copy.base)
    assert contents(again.workspace.root) == before
    assert open_run(root).open(KEY).snapshots.take() == copy.base


def test_copy_that_was_merged_or_kept_is_not_made_again(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    for key, settle in (("a", worktrees.merge), ("b", worktrees.keep)):
        (worktrees.create(key).workspace.root / f"{key}.txt").write_text("work")
        settle(key)
        assert (open_run(tmp_path).create(key).workspace.root / f"{key}.txt").read_text() == "work"


def test_discarded_copy_can_be_made_again(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    before = contents(tmp_path)
    worktrees = open_run(tmp_path)
    copy = worktrees.create(KEY).workspace.root
    (copy / "new.txt").write_text("new")
    worktrees.discard(KEY)
    assert not copy.exists()
    with pytest.raises(StorageError, match="is missing"):
        worktrees.merge(KEY)
    assert contents(worktrees.create(KEY).workspace.root) == before
    assert worktrees.merge(KEY).status == "unchanged"
    worktrees.keep(KEY)
    assert worktrees.merge(KEY).status == "unchanged"


def test_user_repository_keeps_branches_index_stash_and_head(tmp_path: Path) -> None:
    root = nested_root(tmp_path)
    whole_repository(root)
    (root / "pkg" / "code.py").write_text("stashed\n")
    git(root, "stash")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    write_program(root / ".git" / "hooks" / "reference-transaction", f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    before = files_of_git(root)
    worktrees = open_run(root)
    copy = worktrees.create(KEY)
    edit(copy.workspace.root)
    worktrees.merge(KEY)
    after = files_of_git(root)
    assert {path: after.get(path) for path in before} == before
    assert {path.split("/")[0] for path in after.keys() - before.keys()} == {"worktrees"}
    worktrees.discard(KEY)
    assert files_of_git(root) == before
    assert not (tmp_path / "hooked").exists()


def test_git_sees_the_copy_as_it_sees_the_workspace(tmp_path: Path) -> None:
    root = nested_root(tmp_path)
    part_of_a_repository(root)
    write_files(root, {"pkg/code.py": "uncommitted\n", "new.txt": "untracked\n"})
    (root.parent / "above.txt").write_text("changed above\n")
    copy = open_run(root).create(KEY).workspace.root
    for command in (("status", "--short"), ("log", "--format=%H"), ("diff",), ("rev-parse", "--show-prefix")):
        assert git(copy, *command) == git(root, *command)
    assert str(copy.parent) in git(root, "worktree", "list")
    assert "detached" in git(root, "worktree", "list", "--porcelain")
    assert (copy.parent / "above.txt").read_text() == "changed above\n"
    assert os.access(copy.parent / "beside" / "tool.sh", os.X_OK)


def test_git_itself_can_remove_the_copy(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    copy = open_run(tmp_path).create(KEY).workspace.root
    git(tmp_path, "worktree", "remove", "--force", str(copy))
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1
    assert contents(open_run(tmp_path).open(KEY).workspace.root) == contents(tmp_path)
    shutil.rmtree(copy)
    assert contents(open_run(tmp_path).create(KEY).workspace.root) == contents(tmp_path)
    shutil.rmtree(copy)
    git(tmp_path, "worktree", "prune")
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1


def test_linked_worktree_and_one_without_commits_get_copies_too(tmp_path: Path) -> None:
    whole_repository(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "linked"))
    before_the_first_commit(tmp_path / "fresh")
    for root in (tmp_path / "linked", tmp_path / "fresh"):
        worktrees = open_run(root)
        copy = worktrees.create(KEY)
        assert copy.kind == "worktree"
        assert git(copy.workspace.root, "status", "--short") == git(root, "status", "--short")
        worktrees.discard(KEY)
        assert str(copy.workspace.root) not in git(root, "worktree", "list")


def test_ignoring_or_broken_repository_gives_plain_copy(tmp_path: Path) -> None:
    """The repository ignores the workspace, or it is broken."""
    part_of_a_repository(tmp_path / "top" / "work")
    (tmp_path / "top" / ".gitignore").write_text("scratch/\n")
    fill(tmp_path / "top" / "scratch" / "work")
    fill(tmp_path / "broken")
    (tmp_path / "broken" / ".git").write_text("gitdir: /nowhere\n")
    for root in (tmp_path / "top" / "scratch" / "work", tmp_path / "broken"):
        copy = open_run(root).create(KEY)
        assert (copy.kind, contents(copy.workspace.root)) == ("copy", contents(root))


def test_ignored_files_and_caches_stay_behind(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    write_files(tmp_path, {"secret.local": "secret", "shared.local": "shared"})
    git(tmp_path, "add", "--force", "shared.local")
    write_files(tmp_path, {"__pycache__/x.pyc": "x"})
    worktrees = open_run(tmp_path)
    apply_files(Workspace(tmp_path), [{"path": "role.local", "content": "a role's"}])
    worktrees.create("first")
    Snapshots(tmp_path / "runs" / "r1" / ".snapshots", Workspace(tmp_path)).take(force=["role.local"])
    found = contents(worktrees.create(KEY).workspace.root)
    assert found.keys() - {"shared.local", "role.local"} == contents(tmp_path).keys() - {
        *("secret.local", "shared.local", "role.local", "__pycache__/x.pyc")
    }
    assert {"shared.local", "role.local"} <= found.keys()


def test_re_included_run_folder_is_not_copied(tmp_path: Path) -> None:
    fill(tmp_path)
    worktrees = open_run(tmp_path)
    (tmp_path / "runs" / ".gitignore").unlink()
    (tmp_path / ".gitignore").write_text("!runs/\n!runs/**\n")
    copy = worktrees.create(KEY)
    assert not (copy.workspace.root / "runs").exists()
    assert copy.snapshots.take() == copy.base


@pytest.mark.parametrize("key", ["", "..", "/a", "a/", "a//b", "a/../b", "manifest.json", "-x", "é"])
def test_key_leads_nowhere_else(key: str, tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(UsageError, match="cannot name a copy"):
        open_run(tmp_path).create(key)


@pytest.mark.parametrize("arrange", [alone, whole_repository])
def test_killed_anywhere_while_a_copy_is_made(arrange: Arrange, tmp_path: Path) -> None:
    root = nested_root(tmp_path)
    arrange(root)
    edit(root)
    before = contents(root)
    assert killed_until_it_is_done(lambda: open_run(root).create(KEY)) > 10
    copy = open_run(root).open(KEY)
    assert contents(copy.workspace.root) == contents(root) == before
    assert copy.snapshots.take() == copy.base
    if arrange is whole_repository:
        assert len(git(root, "worktree", "list").splitlines()) == 2
        assert git(copy.workspace.root, "status", "--short") == git(root, "status", "--short")


def test_submodules_stay_empty_and_can_be_workspaces_themselves(tmp_path: Path) -> None:
    whole_repository(tmp_path / "library")
    whole_repository(tmp_path / "app")
    allowed = ("-c", "protocol.file.allow=always")
    git(tmp_path / "app", *allowed, "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    git(tmp_path / "app", "commit", "-qm", "a submodule")
    outer = open_run(tmp_path / "app").create(KEY).workspace.root
    assert list((outer / "lib").iterdir()) == []
    assert git(outer, "status", "--short") == ""
    inner = open_run(tmp_path / "app" / "lib").create(KEY)
    assert (inner.kind, contents(inner.workspace.root)) == ("worktree", contents(tmp_path / "library"))
    assert git(inner.workspace.root, "status", "--short") == ""
