"""Git in a repository and in a run folder whose maker wants to run a program: no command of ours runs one.

Costs: each way to have git run a program is tried with commands on real repositories.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

import codex_multi_role
from codex_multi_role.errors import UsageError
from codex_multi_role.host import programs
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.cloning import RemoteGit, clone
from codex_multi_role.workspace.git_settings import FOLDER, LINKED
from codex_multi_role.workspace.repository import Repository, ignored_folders
from codex_multi_role.workspace.run_worktree import add_run_worktree
from tests.support.histories import Files, History
from tests.support.workspaces import Program, git, write_files, write_program

pytestmark = pytest.mark.real

PACKAGE = Path(codex_multi_role.__file__).parent
COMMITTED: Files = {"a.txt": "one\n", "sub/b.txt": "b\n"}
KEYS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
    *("core.alternateRefsCommand", "diff.external", "gpg.program", "gpg.ssh.program", "credential.helper"),
    *("diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "sequence.editor", "interactive.diffFilter"),
    *("remote.origin.uploadpack", "remote.origin.receivepack", "uploadpack.packObjectsHook", "hook.evil.command"),
    *("gc.recentObjectsHook", "alias.status", "alias.ls-files", "pager.status", "trailer.x.command"),
)
FILTERS = ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process")
EVENTS = ("post-checkout", "post-index-change", "reference-transaction", "pre-push", "pre-commit", "fsmonitor-watchman")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def program(folder: Path, name: str = "ran") -> tuple[str, Path]:
    """A program that a maker of repositories would like to run, and the file by which one sees that it ran."""
    return f"touch {folder}/{name}; cat", folder / name


def exported(history: History, branch: str) -> None:
    from codex_multi_role.extensions.results.exporting import export_branch, start_of  # without it, tests are skipped
    from codex_multi_role.extensions.results.run_history import history_of

    recorded = history_of(history.run)
    export_branch(recorded, branch, *start_of(recorded, None))


def repository(folder: Path, attributes: str = "") -> History:
    """A run in a repository with a remote."""
    made = History(folder, {}, {**COMMITTED, **({".gitattributes": attributes} if attributes else {})})
    git(folder, "clone", "-q", "--bare", str(made.workspace), "remote.git")
    git(made.workspace, "remote", "add", "origin", str(folder / "remote.git"))
    made.turn("writer", {"a.txt": "two\n", "new.txt": "new\n"})
    made.ended()
    return made


def hooks(folder: Path, text: str) -> Path:
    write_files(folder, dict.fromkeys(EVENTS, Program(f"#!/bin/sh\n{text}\n")))
    return folder


def use_everything(history: History) -> None:
    """Every way in which this program uses the repository around a workspace."""
    top = history.workspace
    found = Repository.around(top)
    assert found is not None
    ignored_folders(top)
    (top / "a.txt").write_text("three\n")
    found.uncommitted(history.folder / "runs")
    found.tracked_though_ignored(top)
    add_run_worktree(history.folder / "copies", top, "attempt", "r1")
    exported(history, "made")
    remote = RemoteGit(top / ".git", top)
    remote.attempt("ls-remote", "--", "origin")
    remote.attempt("push", "--", "origin", "refs/heads/made:refs/heads/made")
    clone(str(top), "", history.folder / "clone", "it")


@pytest.mark.extensions
@pytest.mark.parametrize("place", ["configured", "default"])
def test_repository_runs_no_program(tmp_path: Path, place: str) -> None:
    """Whatever its configuration says, and its hooks; a run in it, its worktree, branch and push are as without it."""
    history = repository(tmp_path, "* diff=evil merge=evil\n")
    configuration, marks = history.workspace / ".git", tmp_path / "marks"
    marks.mkdir()
    for key in KEYS:
        evil, _ = program(marks, key)
        git(history.workspace, "config", key, f"!{evil}" if key.startswith("alias") else evil)
    git(history.workspace, "config", "hook.evil.event", "pre-push")
    git(history.workspace, "config", "extensions.worktreeConfig", "true")
    git(history.workspace, "config", "include.path", "../team.gitconfig")
    for name, file in {
        "worktree": configuration / "config.worktree",
        "team": history.workspace / "team.gitconfig",
    }.items():
        file.write_text(f'[core]\nfsmonitor = "{program(marks, name)[0]}"\n')
    folder = history.workspace / "husky" if place == "configured" else configuration / "hooks"
    hooks(folder, program(marks, "hook")[0])
    if place == "configured":
        git(history.workspace, "config", "core.hooksPath", str(folder))
    use_everything(history)
    assert [path.name for path in marks.iterdir()] == []
    assert "new.txt" in git(tmp_path / "remote.git", "ls-tree", "--name-only", "made")


@pytest.mark.extensions
@pytest.mark.parametrize("key", FILTERS)
def test_filter_of_a_repository_is_refused_by_name(tmp_path: Path, key: str) -> None:
    history = repository(tmp_path, "a.txt filter=evil\n")
    evil, ran = program(tmp_path)
    git(history.workspace, "config", key, evil)
    with pytest.raises(UsageError, match=r"a\.txt has the git filter evil, which cannot run: only the repository"):
        exported(history, "made")
    with pytest.raises(UsageError, match=r"a\.txt has the git filter evil"):
        add_run_worktree(tmp_path / "copies", history.workspace, "attempt", "r1")
    assert not ran.exists()


@pytest.mark.extensions
@pytest.mark.parametrize("value", ["git-lfs clean -- %f; touch RAN", "sh git-lfs", "$(touch RAN)", "./git-lfs clean"])
def test_what_looks_like_a_known_filter_is_none(tmp_path: Path, value: str) -> None:
    history = repository(tmp_path, "a.txt filter=lfs\n")
    git(history.workspace, "config", "filter.lfs.clean", value.replace("RAN", str(tmp_path / "ran")))
    with pytest.raises(UsageError, match="filter lfs"):
        exported(history, "made")
    assert not (tmp_path / "ran").exists()


def of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "gitconfig").write_text(text)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))


@pytest.mark.extensions
def test_filter_of_the_user_runs_in_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It converts as with ``git add``, in a folder that has attribute files and nothing else."""
    history = repository(tmp_path, "*.txt filter=mine\n")
    log = tmp_path / "seen"
    show = f"find . -type f >> {log}; tr"
    of_the_user(tmp_path, monkeypatch, f'[filter "mine"]\nclean = "{show} a-z A-Z"\nsmudge = "{show} A-Z a-z"\n')
    exported(history, "made")
    assert git(history.workspace, "show", "made:new.txt") == "NEW\n"
    root = add_run_worktree(tmp_path / "copies", history.workspace, "attempt", "r1")
    assert (root / "a.txt").read_text() == "one\n"
    assert (history.workspace / "a.txt").write_text("UP\n")
    found = Repository.around(history.workspace)
    assert found is not None
    found.uncommitted(tmp_path / "runs")
    assert set(log.read_text().splitlines()) == {"./.gitattributes"}


@pytest.mark.extensions
def test_program_of_the_users_filter_in_the_workspace_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = repository(tmp_path, "*.txt filter=mine\n")
    evil, ran = program(tmp_path)
    write_program(history.workspace / "tool.sh", f"#!/bin/sh\n{evil}\n")
    of_the_user(tmp_path, monkeypatch, f'[filter "mine"]\nclean = {history.workspace}/tool.sh %f\n')
    with pytest.raises(UsageError, match=rf"roles can write {history.workspace}/tool.sh"):
        exported(history, "made")
    of_the_user(tmp_path, monkeypatch, '[filter "mine"]\nclean = ./tool.sh\n')
    exported(history, "made")  # not found from there, and not required
    assert not ran.exists()
    programs._excluded.discard(history.workspace)


@pytest.mark.extensions
@pytest.mark.parametrize("place", ["its own", "commondir"])
def test_run_folder_runs_no_program(tmp_path: Path, place: str) -> None:
    """One from elsewhere: `diff`, `apply`, `export` and `blame` only take its objects."""
    from codex_multi_role.extensions.results.applying import apply_result
    from codex_multi_role.extensions.results.lines import line_history
    from codex_multi_role.extensions.results.patches import diff
    from codex_multi_role.extensions.results.run_history import history_of, result_of

    history = repository(tmp_path)
    evil, ran = program(tmp_path)
    states = history.run.snapshots_path
    folder = states
    if place == "commondir":
        (folder := tmp_path / "common").mkdir()
        (states / "commondir").write_text(str(folder))
    hooks(folder / "hooks", evil)
    (states / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")
    drivers = f'[filter "evil"]\nsmudge = "{evil}"\nclean = "{evil}"\n[diff "evil"]\ntextconv = "{evil}"\n'
    core = f"[core]\nrepositoryformatversion = 1\nhooksPath = {folder}/hooks\n[extensions]\nworktreeConfig = true\n"
    included = f'[include]\npath = {tmp_path}/other\n[merge "evil"]\ndriver = "{evil}"\n'
    (folder / "config").write_text(core + drivers + included)
    (states / "config.worktree").write_text(f'[core]\nfsmonitor = "{evil}"\n')
    (tmp_path / "other").write_text(f'[diff]\nexternal = "{evil}"\n')
    recorded = history_of(history.run)
    assert b"new.txt" in diff(history.run).patch
    (target := tmp_path / "target").mkdir()
    (target / "a.txt").write_text("one\nmine\n")
    apply_result(result_of(recorded), Workspace(target), history.run.path, mark_conflicts=True)
    exported(history, "made")
    with line_history([recorded]) as lines:
        assert lines.size("new.txt")
    Snapshots(states, Workspace(history.workspace)).take()  # as `resume` does
    assert not ran.exists()


BROKEN = {
    "binary": b"gitdir: \xff\xfe\0\x1b[2J",
    "null": b"gitdir: \0",
    "empty": b"",
    "itself": b"gitdir: .git",
    "endless": b"gitdir: " + b"a/" * 100_000,
    "elsewhere": b"gitdir: /proc/self",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_git_file_is_not_a_repository(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").write_bytes(BROKEN[name])
    assert Repository.around(tmp_path) is None


@pytest.mark.parametrize("text", ["[", "\0", "[core]\n\tbare = maybe", "[include]\n\tpath = /proc/self/mem"])
def test_repository_with_a_broken_configuration_is_none_or_works(tmp_path: Path, text: str) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/config").write_text(text)
    found = Repository.around(tmp_path)
    assert found is None or found.checked_out() == ""


def test_repository_names_no_file_to_write(tmp_path: Path) -> None:
    """Git would save cookies of a server to the file that ``http.cookieFile`` names."""
    history = repository(tmp_path)
    for key, value in {"http.cookieFile": str(tmp_path / "jar"), "http.saveCookies": "true"}.items():
        git(history.workspace, "config", key, value)
    git(history.workspace, "config", "http.https://example.org/.extraheader", "Authorization: basic x")
    settings = RemoteGit(history.workspace / ".git", history.workspace).settings
    assert settings is not None
    assert [key for key, _ in settings.entries if key.startswith("http.")] == ["http.https://example.org/.extraheader"]


def test_folder_of_links_that_somebody_prepared_is_replaced(tmp_path: Path) -> None:
    history = repository(tmp_path)
    evil, ran = program(tmp_path)
    folder = history.workspace / ".git" / FOLDER
    for prepare in ("config", "extra", "link"):
        use_it(history)
        if prepare == "config":
            (folder / "config").write_text(f'[core]\nfsmonitor = "{evil}"\n[filter "x"]\nclean = "{evil}"\n')
        elif prepare == "extra":
            hooks(folder / "hooks", evil)
        else:
            shutil.rmtree(folder)
            folder.symlink_to(hooks(tmp_path / "elsewhere", evil))
    use_it(history)
    assert not ran.exists()
    assert {path.name for path in folder.iterdir()} == {"config", *LINKED}


def use_it(history: History) -> None:
    found = Repository.around(history.workspace)
    assert found is not None
    found.uncommitted(history.folder / "runs")


def test_one_module_starts_git() -> None:
    """A process is started with a list of arguments; only what is printed may begin with the name of git."""
    naming = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if '"git"' in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1 and _is_git(node.elts[0])
    }
    assert naming == {"workspace/git.py"}


def _is_git(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "git"


@pytest.mark.extensions
def test_large_files_are_pushed_without_the_hook(tmp_path: Path) -> None:
    if subprocess.run(["git", "lfs", "version"], capture_output=True, check=False).returncode:
        pytest.skip("Git LFS is not installed")
    history = repository(tmp_path, "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(history.workspace, "lfs", "install", "--local")
    history.turn("writer", {"data.bin": b"\0large\n" * 100})
    exported(history, "made")
    assert git(history.workspace, "show", "made:data.bin").startswith("version https://git-lfs.github.com/spec/v1")
    root = add_run_worktree(tmp_path / "copies", history.workspace, "", "r1")
    assert root.is_dir()
    assert list((history.workspace / ".git/lfs/objects").rglob("*"))
