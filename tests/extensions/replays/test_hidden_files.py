"""What of a workspace counts besides its snapshot: whatever a command could tell apart, or may have changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.extensions.replays.reuse.contents import MAX_FILES
from codex_multi_role.extensions.replays.reuse.hidden_changes import are_same_hidden_files, hidden_state
from codex_multi_role.extensions.replays.reuse.hidden_files import TOO_MUCH, hidden_files
from codex_multi_role.workspace import Snapshots, Workspace
from tests.support.workspaces import commit_all, git, write_files

pytestmark = pytest.mark.real

Edit = Callable[[Path], object]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with a run folder in it."""
    (runs := tmp_path / "work/runs").mkdir(parents=True)
    return Workspace(runs.parent, (runs,))


@pytest.fixture
def seen(tmp_path: Path) -> Callable[[], str]:
    """The digest of a workspace below a folder that is named like a cache."""
    root = tmp_path / ".my_cache/work"
    write_files(root, {".gitignore": ".env\nlink\n", ".env": "1", "a.txt": "1", "lib/x.txt": "1"})
    write_files(tmp_path, {"outside/x.txt": "1"})
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "runs").mkdir()
    commit_all(root / "lib")
    workspace = Workspace(root, (root / "runs",))
    snapshots = Snapshots(tmp_path / "snapshots.git", workspace)

    def look() -> str:
        snapshots.take()
        return hidden_files(snapshots, workspace)

    return look


NOTICED: dict[str, Edit] = {
    "ignored file": lambda root: (root / ".env").write_text("2"),
    "its mode": lambda root: (root / ".env").chmod(0o755),
    "a mode": lambda root: (root / "a.txt").chmod(0o600),
    "empty folder": lambda root: (root / "empty").mkdir(),
    "nested repository": lambda root: (root / "lib/x.txt").write_text("2"),
    "ignored link": lambda root: (root / "link/x.txt").write_text("2"),
    "nested commit": lambda root: git(root / "lib", "commit", "-q", "--allow-empty", "-m", "second"),
}
COMPARED_ELSEWHERE: dict[str, Edit] = {
    "run folder": lambda root: (root / "runs/r1").mkdir(),
    "cache": lambda root: (root / "__pycache__").mkdir(),
    "file of the snapshot": lambda root: (root / "a.txt").write_text("2"),
}


def test_hidden_files_notice_what_is_not_compared_elsewhere(seen: Callable[[], str], tmp_path: Path) -> None:
    before = seen()
    assert seen() == before != TOO_MUCH
    for name, edit in {**NOTICED, **COMPARED_ELSEWHERE}.items():
        edit(tmp_path / ".my_cache/work")
        after = seen()
        assert (after != before) == (name in NOTICED), name
        before = after


def test_hidden_files_are_limited(seen: Callable[[], str], tmp_path: Path) -> None:
    folder = tmp_path / ".my_cache/work/.env.d"
    write_files(folder, {".gitignore": "*\n"})
    for number in range(MAX_FILES + 1):
        (folder / str(number)).touch()
    assert seen() == TOO_MUCH


def test_repository_counts_where_it_exists(seen: Callable[[], str], tmp_path: Path) -> None:
    """A restored workspace has none, and stands for the one with the repository."""
    root, without = tmp_path / ".my_cache/work", seen()
    commit_all(root)
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


def put(path: str) -> Callable[[Path], None]:
    return lambda root: write_files(root, {path: "another"})


CHANGES: list[tuple[Callable[[Path], object], bool]] = [
    (put("dist/old.txt"), True),
    (put("dist/sub/new.txt"), True),
    (lambda root: (root / "dist/old.txt").chmod(0o755), True),
    (lambda root: (root / "dist/old.txt").unlink(), True),
    (lambda root: shutil.rmtree(root / "empty"), True),
    (lambda root: (root / "a/empty").mkdir(), True),
    (put(".venv/lib/python3/site-packages/new"), True),
    (put("node_modules/new/index.js"), True),
    (put("nested/f.txt"), True),
    (lambda root: git(root, "init", "-q", "new"), True),
    (put(".venv/lib/python3/site-packages/old/x.py"), False),
    (put("dist/__pycache__/x.pyc"), False),
    (put(".pytest_cache/x"), False),
    (put("runs/r1/x"), False),
    (put("a/new.txt"), False),
]


def test_change_outside_of_snapshots_counts(workspace: Workspace, tmp_path: Path) -> None:
    root, snapshots = workspace.root, Snapshots(tmp_path / "git", workspace)
    for name in ("a/x.txt", "dist/old.txt", ".venv/lib/python3/site-packages/old/x.py", "nested/f.txt"):
        put(name)(root)
    (root / "empty").mkdir()
    (root / ".gitignore").write_text("dist\n.pytest_cache\nnode_modules\n")
    write_files(root, {"dist/old.txt": "old", "nested/f.txt": "old"})
    commit_all(root / "nested")
    snapshots.take()
    before = hidden_state(snapshots, workspace)
    for number, (change, counts) in enumerate(CHANGES):
        change(root)
        snapshots.take()
        after = hidden_state(snapshots, workspace)
        assert (after != before) == counts, number
        before = after
