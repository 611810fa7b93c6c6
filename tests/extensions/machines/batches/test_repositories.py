"""Clones of repositories, with real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.batches.repositories import clone
from tests.support.workspaces import git, write_files

pytestmark = pytest.mark.real


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with the branches main and other, and the tag v1 on the first commit."""
    (folder := tmp_path / "shop").mkdir()
    git(folder, "init", "-q")
    for name in ("one", "two"):
        (folder / name).write_text(name)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", name)
    git(folder, "tag", "v1", "HEAD~1")
    git(folder, "branch", "other", "HEAD~1")
    return folder


@pytest.mark.parametrize(
    ("ref", "branch", "files"),
    [(None, "main", ["one", "two"]), ("other", "other", ["one"]), ("v1", "", ["one"]), ("commit", "", ["one"])],
)
def test_ref_is_checked_out(shop: Path, tmp_path: Path, ref: str | None, branch: str, files: list[str]) -> None:
    """A commit is named by its hash; `origin` is the repository and not its mirror."""
    ref = git(shop, "rev-parse", "v1").strip() if ref == "commit" else ref
    clone(str(shop), ref, tmp_path / "mirrors", tmp_path / "work")
    assert sorted(path.name for path in (tmp_path / "work").iterdir() if path.name != ".git") == files
    assert git(tmp_path / "work", "branch", "--show-current").strip() == branch
    assert git(tmp_path / "work", "remote", "get-url", "origin").strip() == str(shop)


def test_rest_of_a_killed_clone_is_replaced(shop: Path, tmp_path: Path) -> None:
    write_files(tmp_path, {".work.part/rest": ""})
    clone(str(shop), None, tmp_path / "mirrors", tmp_path / "work")
    (tmp_path / "work/ours").touch()
    clone(str(shop), None, tmp_path / "mirrors", tmp_path / "work")
    assert {path.name for path in (tmp_path / "work").iterdir()} == {".git", "one", "two", "ours"}
    assert not (tmp_path / ".work.part").exists()


@pytest.mark.parametrize(("name", "ref", "reason"), [("none", None, "does not exist"), ("shop", "nope", "nope")])
def test_failed_clone_says_why_and_leaves_no_workspace(
    shop: Path, tmp_path: Path, name: str, ref: str | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=rf"the repository {shop.with_name(name)} was not cloned: .*{reason}"):
        clone(str(shop.with_name(name)), ref, tmp_path / "mirrors", tmp_path / "work")
    assert not (tmp_path / "work").exists()
