"""Filters of git that cannot do their work: the reason is theirs, not a disk that is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.workspace.conversion import clean
from codex_multi_role.workspace.git import ConfiguredGit
from codex_multi_role.workspace.run_worktree import add_run_worktree
from tests.support.workspaces import commit_all

FILTERS = ("clean = not-there\nsmudge = not-there", "process = not-there", "clean = /not-there\nsmudge = /not-there")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of which one file has a filter that nobody has configured."""
    (top := tmp_path / "project").mkdir()
    (top / "a.txt").write_text("text\n")
    (top / ".gitattributes").write_text("a.txt filter=secret\n")
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
