"""A run in a repository with a clean status: its branch has the files that roles wrote, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.teams import WRITER, TeamFolder, say
from tests.support.workspaces import commit_all, git

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

WRITTEN = [{"path": "new.txt", "content": "new\n"}, {"path": "kept.log", "content": "2\n"}]


def _ignored_by_the_owner(root: Path) -> None:
    (root / ".git/info/exclude").write_text(".env\n")
    (root / ".env").write_text("TOKEN=1\n")


def _sparse(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--cone", "src")
    assert not (root / "docs").exists()


def _tracked_though_ignored(root: Path) -> None:
    (root / ".git/info/exclude").write_text("*.log\n")


@pytest.mark.parametrize("worktree", [False, True], ids=["in-place", "worktree"])
@pytest.mark.parametrize("arrange", [_ignored_by_the_owner, _sparse, _tracked_though_ignored])
def test_branch_has_what_roles_wrote(tmp_path: Path, arrange: Callable[[Path], None], worktree: bool) -> None:
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=WRITTEN)]})
    root = team.workspace
    (root / "docs").mkdir()
    (root / "docs/guide.md").write_text("guide\n")
    (root / "kept.log").write_text("1\n")
    (root / ".gitignore").write_text("*.log\n")
    commit_all(root)
    git(root, "add", "--force", "kept.log")
    git(root, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "log")
    arrange(root)
    assert git(root, "status", "--porcelain") == ""
    team.run(worktree=worktree)
    done = console("export", "--branch", "agents/run", "--runs-dir", str(team.runs), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert git(root, "log", "--format=%s", "main..agents/run").splitlines() == ["one: fine"]
    assert git(root, "diff", "--name-status", "main", "agents/run").split() == ["M", "kept.log", "A", "new.txt"]


def test_ignored_file_of_a_role_is_named(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [say(files=[*WRITTEN, {"path": ".env", "content": "A=1\n"}])]})
    (team.workspace / "a.txt").write_text("a\n")
    commit_all(team.workspace)
    _ignored_by_the_owner(team.workspace)
    team.run()
    done = console("export", "--branch", "agents/run", "--runs-dir", str(team.runs), folder=tmp_path)
    assert "left out, because git ignores them: .env\n" in done.stdout
    assert git(team.workspace, "diff", "--name-only", "main", "agents/run").split() == ["kept.log", "new.txt"]
