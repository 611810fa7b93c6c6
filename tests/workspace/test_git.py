"""Git ends at once when it is stopped, reads again what changed meanwhile, and says which filter cannot do its work."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.workspace.conversion import clean
from codex_multi_role.workspace.git import ConfiguredGit, Git
from codex_multi_role.workspace.run_worktree import add_run_worktree
from tests.support.workspaces import commit_all, write_files


@pytest.fixture
def git(tmp_path: Path) -> Git:
    made = Git(tmp_path, tmp_path)
    made.run("init", "--quiet")
    return made


def test_interrupted_git_ends_without_its_output_being_read(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """To collect gigabytes took longer than a person waits, and twice their memory."""
    collected: list[int] = []

    def interrupted(self: subprocess.Popen[bytes], *given: Any, **named: Any) -> None:
        collected.append(self.pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        git.run("cat-file", "--batch")
    assert len(collected) == 1
    assert not psutil.pid_exists(collected[0])


def test_git_allocates_no_object_beyond_the_limit(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack of a few bytes may stand for an object of any size."""
    assert git.environment["GIT_ALLOC_LIMIT"] == "1g"
    monkeypatch.setattr("codex_multi_role.workspace.git.MAX_OBJECT_MEMORY", "1k")
    with pytest.raises(StorageError, match="over limit"):
        git.run("hash-object", "--stdin", stdin=bytes(100_000))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (128, b"fatal: unable to stat 'a.tmp': No such file or directory"),
        (1, b'error: open("a.tmp"): No such file or directory'),
        (0, b"error: short read while indexing a.tmp"),
        (128, b"fatal: failed to read 9 bytes from 'a.tmp'"),
        (-signal.SIGBUS, b""),
    ],
)
def test_what_changed_while_git_read_is_read_again(
    git: Git, monkeypatch: pytest.MonkeyPatch, code: int, said: bytes
) -> None:
    """Whether threads that change files meanwhile come to it depends on the machine."""
    (git.work_tree / "a.txt").touch()
    run, codes = Git._run, [code]

    def disturbed(self: Git, argv: list[str], *given: Any) -> subprocess.CompletedProcess[bytes]:
        if not codes:
            return run(self, argv, *given)
        if code < 0:
            (git.git_dir / "index.lock").touch()
        return subprocess.CompletedProcess(argv, codes.pop(), b"", said)

    monkeypatch.setattr(Git, "_run", disturbed)
    git.read_files("add", "a.txt")
    assert git.run("ls-files").stdout == b"a.txt\n"


FILTERS = ("clean = not-there\nsmudge = not-there", "process = not-there", "clean = /not-there\nsmudge = /not-there")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which one file has a filter that nobody has configured."""
    (top := tmp_path / "project").mkdir()
    write_files(top, {"a.txt": "text\n", ".gitattributes": "a.txt filter=secret\n"})
    commit_all(top)
    return top


def configure(project: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Give the user a configuration with these lines about the filter."""
    (project.parent / "gitconfig").write_text(f'[filter "secret"]\n{lines}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(project.parent / "gitconfig"))


@pytest.mark.parametrize("lines", FILTERS)
def test_required_filter_whose_program_is_missing_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    configure(project, monkeypatch, f"{lines}\nrequired = true")
    with pytest.raises(UsageError, match=r"^a\.txt has a git filter that failed: .*not-there.*(not found|No such)"):
        add_run_worktree(project.parent / "copies", project, "", "r1")
    git = ConfiguredGit(project / ".git", project)
    with pytest.raises(UsageError, match=r"^a\.txt has a git filter that failed: .*not-there") as error:
        clean(git, {"a.txt": project / "a.txt"}, project)
    assert "git config --get-regexp '^filter'" in error.value.hint


@pytest.mark.parametrize("value", ["required = true", "required = yes", "required"])
def test_filter_that_is_only_required_is_named(project: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    configure(project, monkeypatch, value)
    with pytest.raises(UsageError, match=r"^a\.txt has the git filter secret, which cannot run: it has no program$"):
        add_run_worktree(project.parent / "copies", project, "", "r1")


@pytest.mark.parametrize("lines", ["required = false", "smudge = not-there"])
def test_filter_that_is_not_required_changes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    configure(project, monkeypatch, lines)
    copy = add_run_worktree(project.parent / "copies", project, "", "r1")
    assert (copy / "a.txt").read_text() == "text\n"
