from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.workspace.removal import RemovedCopies, collect, delete_folder
from tests.support.processes import killed_until_it_is_done
from tests.support.workspaces import KEY, contents, fill, git, open_run, whole_repository

pytestmark = pytest.mark.real


def _collect(root: Path, *, dry_run: bool = False) -> list[RemovedCopies]:
    return collect(root / "runs" / "r1" / "worktrees" / "manifest.json", alive=False, dry_run=dry_run)


def _merged_copy(root: Path, key: str = KEY) -> Path:
    worktrees = open_run(root)
    copy = worktrees.create(key).workspace.root
    (copy / f"{key}.txt").write_text("work\n")
    assert worktrees.merge(key).status == "merged"
    return copy


def test_merged_and_unchanged_copies_are_removed(tmp_path: Path) -> None:
    """The result of the merge stays."""
    whole_repository(tmp_path)
    copy = _merged_copy(tmp_path)
    result = open_run(tmp_path).merge(KEY)
    open_run(tmp_path).create("idle.1.0")
    open_run(tmp_path).merge("idle.1.0")
    (copy / "ignored.local").write_text("x")
    (copy / "closed").mkdir()
    (copy / "closed").chmod(0o500)
    assert [(each.key, each.action, each.reason) for each in _collect(tmp_path)] == [
        (KEY, "removed", "merged"),
        ("idle.1.0", "removed", "unchanged"),
    ]
    assert not copy.exists()
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1
    assert open_run(tmp_path).merge(KEY) == result
    assert _collect(tmp_path) == []


def test_dry_run_only_says_it(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    copy = _merged_copy(tmp_path)
    manifest = (tmp_path / "runs" / "r1" / "worktrees" / "manifest.json").read_bytes()
    (found,) = _collect(tmp_path, dry_run=True)
    assert (found.action, found.path) == ("would remove", copy)
    assert copy.is_dir()
    assert (tmp_path / "runs" / "r1" / "worktrees" / "manifest.json").read_bytes() == manifest


def test_copy_is_kept_as_long_as_something_is_only_there(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    for key in ("open.1.0", "lost.1.0"):
        open_run(tmp_path).create(key)
    open_run(tmp_path).keep("lost.1.0")
    clash = open_run(tmp_path).create("clash.1.0").workspace.root
    for number in range(5):
        (clash / f"{number}.txt").write_text("there")
        (tmp_path / f"{number}.txt").write_text("here")
    open_run(tmp_path).merge("clash.1.0")
    (_merged_copy(tmp_path, "later.1.0") / "later.txt").write_text("later\n")
    committed = _merged_copy(tmp_path, "own.1.0")
    git(committed, "add", ".")
    git(committed, "commit", "-qm", "by a role")
    found = _collect(tmp_path)
    assert {each.action for each in found} == {"kept"}
    assert all(each.path.is_dir() for each in found)
    assert {each.key.partition(".")[0]: each.reason for each in found} == {
        "open": "not merged",
        "lost": "not merged: another copy was chosen",
        "clash": "its changes conflict: 0.txt, 1.txt, 2.txt and 2 more",
        "later": "changed after it was merged",
        "own": "it has commits that are not on any branch",
    }
    git(committed, "branch", "saved")
    assert [each.action for each in _collect(tmp_path)] == ["kept"] * 4 + ["removed"]


def test_copy_whose_folder_or_repository_is_gone_is_forgotten(tmp_path: Path) -> None:
    whole_repository(tmp_path)
    shutil.rmtree(_merged_copy(tmp_path))
    assert [each.action for each in _collect(tmp_path)] == ["removed"]
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1
    copy = _merged_copy(tmp_path, "other.1.0")
    (tmp_path / ".git").rename(tmp_path / "was.git")
    assert [each.action for each in _collect(tmp_path)] == ["removed"]
    assert not copy.exists()


@pytest.mark.parametrize("path", ["duel.1.0/copy/../../../..", "duel.1.0/copy", "../../../outside", "/outside"])
def test_only_copies_in_run_folder_are_removed(path: str, tmp_path: Path) -> None:
    fill(tmp_path)
    _merged_copy(tmp_path)
    _edit_manifest(tmp_path, path=path)
    before = contents(tmp_path)
    with pytest.raises(StorageError, match=r"the copy duel\.1\.0 leads elsewhere"):
        _collect(tmp_path)
    assert contents(tmp_path) == before


def test_link_in_the_place_of_a_copy_is_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "work")
    copy = _merged_copy(tmp_path / "work")
    copy.rename(tmp_path / "elsewhere")
    copy.symlink_to(tmp_path / "elsewhere")
    assert [each.reason for each in _collect(tmp_path / "work")] == ["it is outside the run's copies"]
    open_run(tmp_path / "work").discard(KEY)
    assert (tmp_path / "elsewhere" / "gone.txt").exists()


def test_manifest_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path)
    _merged_copy(tmp_path)
    _edit_manifest(tmp_path, key="../..")
    with pytest.raises(StorageError, match="cannot be read"):
        _collect(tmp_path)


@pytest.mark.parametrize("remove", [_collect, lambda root: open_run(root).remove_merged()], ids=["gc", "success"])
def test_killed_anywhere_the_next_one_removes_the_rest(tmp_path: Path, remove: Callable[[Path], object]) -> None:
    whole_repository(tmp_path)
    copy = _merged_copy(tmp_path)
    assert killed_until_it_is_done(lambda: remove(tmp_path)) > 10
    assert not copy.parent.exists()
    assert len(git(tmp_path, "worktree", "list").splitlines()) == 1
    assert not (tmp_path / ".git/worktrees").exists()


def _edit_manifest(root: Path, **values: Any) -> None:
    path = root / "runs" / "r1" / "worktrees" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["copies"][0].update(values)
    path.write_text(json.dumps(manifest))


def test_link_in_the_place_of_a_folder_is_deleted_and_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "kept")
    (tmp_path / "link").symlink_to("kept")
    delete_folder(tmp_path / "link")
    assert [*tmp_path.iterdir()] == [tmp_path / "kept"]
