"""What of a workspace counts besides its snapshot: whatever a command could tell apart."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.contents import MAX_FILES
from codex_multi_role.workspace.hidden_files import TOO_MUCH, are_same_hidden_files, hidden_files

Edit = Callable[[Path], object]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[], str]:
    """The digest of a workspace below a folder that is named like a cache."""
    root = tmp_path / ".my_cache/work"
    for name, text in ((".gitignore", ".env\nlink\n"), (".env", "1"), ("a.txt", "1"), ("lib/x.txt", "1")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.txt").write_text("1")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "runs").mkdir()
    commit(root / "lib")
    workspace = Workspace(root, (root / "runs",))
    snapshots = Snapshots(tmp_path / "snapshots.git", workspace)

    def look() -> str:
        snapshots.take()
        return hidden_files(snapshots, workspace)

    return look


@pytest.mark.parametrize(
    "edit",
    [
        lambda root: (root / ".env").write_text("2"),
        lambda root: (root / ".env").chmod(0o755),
        lambda root: (root / "a.txt").chmod(0o600),
        lambda root: (root / "empty").mkdir(),
        lambda root: (root / "lib/x.txt").write_text("2"),
        lambda root: (root / "link/x.txt").write_text("2"),
        lambda root: git(root / "lib", "commit", "-q", "--allow-empty", "-m", "second"),
    ],
    ids=["ignored file", "its mode", "a mode", "empty folder", "nested repository", "ignored link", "nested commit"],
)
def test_hidden_files_notice_an_edit(seen: Callable[[], str], tmp_path: Path, edit: Edit) -> None:
    before = seen()
    assert seen() == before != TOO_MUCH
    edit(tmp_path / ".my_cache/work")
    assert seen() != before


@pytest.mark.parametrize(
    "edit",
    [
        lambda root: (root / "runs/r1").mkdir(),
        lambda root: (root / "__pycache__").mkdir(),
        lambda root: (root / "a.txt").write_text("2"),
    ],
    ids=["run folder", "cache", "file of the snapshot"],
)
def test_hidden_files_ignore_what_is_compared_elsewhere(seen: Callable[[], str], tmp_path: Path, edit: Edit) -> None:
    before = seen()
    edit(tmp_path / ".my_cache/work")
    assert seen() == before


def test_hidden_files_are_limited(seen: Callable[[], str], tmp_path: Path) -> None:
    folder = tmp_path / ".my_cache/work/.env.d"
    folder.mkdir()
    (folder / ".gitignore").write_text("*\n")
    for number in range(MAX_FILES + 1):
        (folder / str(number)).touch()
    assert seen() == TOO_MUCH


def test_repository_counts_where_it_exists(seen: Callable[[], str], tmp_path: Path) -> None:
    """A restored workspace has none, and stands for the one with the repository."""
    root, without = tmp_path / ".my_cache/work", seen()
    commit(root)
    first = seen()
    assert seen() == first
    assert are_same_hidden_files(first, first)
    assert are_same_hidden_files(first, without)
    assert not are_same_hidden_files(without, first)
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    assert not are_same_hidden_files(first, seen())
    second = seen()
    git(root, "rm", "--cached", "-q", "a.txt")
    assert not are_same_hidden_files(second, seen())
