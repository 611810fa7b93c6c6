from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git_settings import FOLDER
from codex_multi_role.workspace.manifest import OF_RUN, Manifest
from codex_multi_role.workspace.removal import RemovedCopies, collect
from codex_multi_role.workspace.repository import Repository
from codex_multi_role.workspace.run_worktree import (
    abandon_run_worktree,
    add_run_worktree,
    open_run_worktree,
    record_run_worktree,
    require_repository,
)
from tests.support.catalogs import raised
from tests.support.workspaces import commit_all, contents, everything, fill, git, write_files, write_program

pytestmark = pytest.mark.real


def _repository(folder: Path) -> Path:
    top = folder / "project"
    fill(top / "part")
    (top / "above.txt").write_text("above\n")
    commit_all(top)
    return top


def _copies(folder: Path) -> Path:
    (copies := folder / "runs" / "r1" / "worktrees").mkdir(parents=True)
    return copies


def _snapshots(copies: Path, root: Path) -> Snapshots:
    return Snapshots(copies.parent / ".snapshots", Workspace.of_run(root, copies.parent))


def _collect(copies: Path) -> tuple[str, str]:
    (found,) = collect(copies / "manifest.json", alive=False, dry_run=False)
    assert isinstance(found, RemovedCopies)
    return found.action, found.reason


@pytest.mark.parametrize("part", ["", "part"])
def test_worktree_is_the_commit_and_the_users_tree_stays(tmp_path: Path, part: str) -> None:
    """Hooks, index, stash and branches, too; below the top, the run works in the same subfolder."""
    top = _repository(tmp_path)
    committed = contents(top / part)
    (top / "above.txt").write_text("stashed\n")
    git(top, "stash")
    write_program(top / ".git/hooks/post-checkout", "#!/bin/sh\ntouch hook-ran\n")
    (top / "part/gone.txt").unlink()
    (top / "staged.txt").write_text("staged\n")
    git(top, "add", "staged.txt")
    before = everything(top)
    copies = _copies(tmp_path)
    root = add_run_worktree(copies, top / part, "", "r1")
    assert root.relative_to(Manifest(copies).place).as_posix() == f"run/copy/project/{part}".rstrip("/")
    assert contents(root) == committed
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "branch", "--show-current") == ""
    changed = {path for path, content in everything(top).items() if before.get(path) != content}
    assert {Path(path).relative_to(top).parts[:2] for path in changed} <= {(".git", "worktrees"), (".git", FOLDER)}
    assert everything(top).keys() >= before.keys()


def test_branch_is_created_at_the_commit(tmp_path: Path) -> None:
    top = _repository(tmp_path)
    root = add_run_worktree(_copies(tmp_path), top, "attempt/1", "r1")
    assert git(root, "branch", "--show-current") == "attempt/1\n"
    assert git(top, "rev-parse", "attempt/1") == git(top, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("branch", "problem"),
    [
        ("main", "the branch main already exists"),
        ("main/1", "the branch main/1 cannot exist beside the branch main"),
        ("a..b", "'a..b' cannot be the name of a branch"),
        ("-x", "'-x' cannot be the name of a branch"),
        ("@{-1}", "'@{-1}' cannot be the name of a branch"),
        ("HEAD", "'HEAD' cannot be the name of a branch"),
    ],
)
def test_branch_that_cannot_be_created_is_refused(tmp_path: Path, branch: str, problem: str) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    commit_all(tmp_path)
    assert str(raised(UsageError, require_repository, tmp_path, branch)) == f"--branch: {problem}"


def test_folder_without_a_commit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not in a git repository"):
        require_repository(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(UsageError, match="has no commit") as error:
        require_repository(tmp_path)
    assert error.value.hint.startswith("Commit the files")
    (tmp_path / "a.txt").write_text("a\n")
    commit_all(tmp_path)
    (tmp_path / "new").mkdir()
    with pytest.raises(UsageError, match="the folder new is not in the commit"):
        require_repository(tmp_path / "new")


def test_uncommitted_files_are_counted(tmp_path: Path) -> None:
    """Each untracked one, and none that is ignored or below the runs; the index is not refreshed."""
    fill(tmp_path)
    commit_all(tmp_path)
    repository = Repository.around(tmp_path)
    assert repository is not None
    runs = tmp_path / "runs"
    assert repository.uncommitted(runs) == []
    names = ("new/1.txt", "new/2.txt", "ignored.local", "runs/r1/run.json", "crlf.txt")
    write_files(tmp_path, dict.fromkeys(names, "x"))
    (tmp_path / "gone.txt").rename(tmp_path / "moved.txt")
    index = (tmp_path / ".git/index").read_bytes()
    assert len(repository.uncommitted(runs)) == 5
    assert (tmp_path / ".git/index").read_bytes() == index


def test_files_are_ignored_and_converted_as_the_user_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the user's own configuration, such as Git LFS."""
    (top := tmp_path / "project").mkdir()
    write_files(top, {"a.txt": "text\n", ".gitattributes": "a.txt filter=upper\n"})
    commit_all(top)
    (tmp_path / "ignore").write_text("*.swp\n")
    settings = f'[core]\nexcludesFile = {tmp_path}/ignore\n[filter "upper"]\nsmudge = tr a-z A-Z\n'
    (tmp_path / "gitconfig").write_text(settings)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (top / "a.swp").write_text("")
    assert require_repository(top).uncommitted(tmp_path / "runs") == []
    assert (add_run_worktree(_copies(tmp_path), top, "", "r1") / "a.txt").read_text() == "TEXT\n"


def test_deleted_worktree_is_created_again_as_it_was_recorded(tmp_path: Path) -> None:
    top = _repository(tmp_path)
    copies = _copies(tmp_path)
    root = add_run_worktree(copies, top / "part", "attempt", "r1")
    (root / "new.txt").write_text("new\n")
    (root / "gone.txt").unlink()
    (root / "run.local").write_text("written by a role, ignored\n")
    _snapshots(copies, root).take(force=["run.local"])
    recorded = contents(root)
    shutil.rmtree(Manifest(copies).place / OF_RUN)
    assert open_run_worktree(copies) == root
    assert contents(root) == recorded
    assert (root.parent / "above.txt").read_text() == "above\n"
    assert git(root, "branch", "--show-current") == "attempt\n"
    assert len(git(top, "worktree", "list").splitlines()) == 2


def test_worktree_without_its_repository_cannot_be_created_again(tmp_path: Path) -> None:
    top = _repository(tmp_path)
    copies = _copies(tmp_path)
    add_run_worktree(copies, top, "", "r1")
    shutil.rmtree(Manifest(copies).place / OF_RUN)
    shutil.rmtree(top / ".git")
    with pytest.raises(UsageError, match="was deleted and cannot be created again") as error:
        open_run_worktree(copies)
    assert "fork" in error.value.hint


def test_gc_removes_the_worktree_once_its_files_are_recorded(tmp_path: Path) -> None:
    """The branch and the recorded states stay."""
    top = _repository(tmp_path)
    copies = _copies(tmp_path)
    root = add_run_worktree(copies, top, "attempt", "r1")
    (root / "new.txt").write_text("new\n")
    assert _collect(copies) == ("kept", "its run has not ended")
    record_run_worktree(copies, _snapshots(copies, root).take())
    (root / "later.txt").write_text("later\n")
    assert _collect(copies) == ("kept", "changed after its run ended")
    (root / "later.txt").unlink()
    assert _collect(copies) == ("removed", "its files are recorded in the run folder")
    assert not root.exists()
    assert len(git(top, "worktree", "list").splitlines()) == 1
    assert git(top, "branch", "--list", "attempt").strip() == "attempt"
    assert open_run_worktree(copies) == root
    assert (root / "new.txt").read_text() == "new\n"


def test_gc_keeps_commits_that_no_branch_has(tmp_path: Path) -> None:
    copies = _copies(tmp_path)
    root = add_run_worktree(copies, _repository(tmp_path), "", "r1")
    (root / "new.txt").write_text("new\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "own")
    record_run_worktree(copies, _snapshots(copies, root).take())
    assert _collect(copies) == ("kept", "it has commits that are not on any branch")


def test_abandoned_worktree_leaves_nothing(tmp_path: Path) -> None:
    top = _repository(tmp_path)
    before = everything(top / ".git/refs", top / "part")
    copies = _copies(tmp_path)
    add_run_worktree(copies, top, "attempt", "r1")
    abandon_run_worktree(copies)
    assert everything(top / ".git/refs", top / "part") == before
    assert git(top, "worktree", "list").count("\n") == 1
    assert [copy["key"] for copy in json.loads((copies / "manifest.json").read_text())["copies"]] == [OF_RUN]
    abandon_run_worktree(tmp_path / "none")


def test_branch_of_another_run_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Created between the check and the worktree."""
    top = _repository(tmp_path)
    first, copies = tmp_path / "runs/r0/worktrees", _copies(tmp_path)
    monkeypatch.setattr(Repository, "branch_problem", lambda *_: "")
    root = add_run_worktree(first, top, "attempt", "r0")
    with pytest.raises(StorageError):
        add_run_worktree(copies, top, "attempt", "r1")
    abandon_run_worktree(copies)
    assert git(root, "branch", "--show-current") == "attempt\n"
    assert git(top, "branch", "--list", "attempt").split() == ["+", "attempt"]
