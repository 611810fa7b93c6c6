"""What counts as a change that no snapshot has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.hidden_changes import hidden_state


def put(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("another")

    return change


def make_repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", "new"], cwd=root, check=True)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (put("dist/old.txt"), True),
        (put("dist/sub/new.txt"), True),
        (lambda root: (root / "dist/old.txt").unlink(), True),
        (lambda root: (root / "dist/old.txt").chmod(0o755), True),
        (lambda root: shutil.rmtree(root / "empty"), True),
        (lambda root: (root / "a/empty").mkdir(), True),
        (put(".venv/lib/python3/site-packages/new"), True),
        (put("node_modules/new/index.js"), True),
        (put("nested/f.txt"), True),
        (make_repository, True),
        (put(".venv/lib/python3/site-packages/old/x.py"), False),
        (put("dist/__pycache__/x.pyc"), False),
        (put(".pytest_cache/x"), False),
        (put("runs/r1/x"), False),
        (put("a/new.txt"), False),
    ],
)
def test_change_outside_of_snapshots_counts(
    workspace: Workspace, tmp_path: Path, change: Callable[[Path], None], *, counts: bool
) -> None:
    root, snapshots = workspace.root, Snapshots(tmp_path / "git", workspace)
    for name in ("a/x.txt", "dist/old.txt", ".venv/lib/python3/site-packages/old/x.py", "nested/f.txt"):
        put(name)(root)
    (root / "empty").mkdir()
    (root / ".gitignore").write_text("dist\n.pytest_cache\nnode_modules\n")
    (root / "dist/old.txt").write_text("old")
    (root / "nested/f.txt").write_text("old")
    user = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (["init", "-q"], ["add", "."], [*user, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=root / "nested", check=True)
    snapshots.take()
    before = hidden_state(snapshots, workspace)
    change(root)
    snapshots.take()
    assert (hidden_state(snapshots, workspace) != before) == counts
