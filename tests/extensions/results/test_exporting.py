"""A run as a branch: each commit is its turn's state, whatever the files are, and nothing else of the owner changes.

Costs: histories on real git, killed at many places.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.results.exporting import Exported, export_branch, start_of
from codex_multi_role.extensions.results.run_history import history_of
from tests.support.disks import PERSON
from tests.support.histories import SUBMODULE, Files, History
from tests.support.kills import is_killed
from tests.support.workspaces import Program, write_files

pytestmark = pytest.mark.real

BRANCH = "agents/run"
COMMITTED: Files = {"a.txt": "one\ntwo\n", "b.py": "b = 1\n", "kept/c.txt": "c\n"}


def git(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        ["git", *PERSON, *arguments], cwd=folder, env={**ENVIRONMENT, **environment}, capture_output=True, check=True
    )
    return done.stdout.decode(errors="surrogateescape")


ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def exported(history: History, branch: str = BRANCH) -> Exported:
    recorded = history_of(history.run)
    return export_branch(recorded, branch, *start_of(recorded, None))


def subjects(history: History) -> list[str]:
    return git(history.workspace, "log", "--format=%an: %s", "--reverse", BRANCH).splitlines()


def differences(history: History, commit: str, state: str, folder: Path) -> str:
    """What git sees as changed between ``commit`` and a recorded state of the workspace."""
    folder.mkdir()
    private = {"GIT_DIR": str(history.run.snapshots_path), "GIT_INDEX_FILE": str(folder.with_suffix(".index"))}
    git(folder, "read-tree", state, **private)
    git(folder, "checkout-index", "-a", f"--prefix={folder}/", **private)
    there = {"GIT_DIR": str(history.workspace / ".git"), "GIT_WORK_TREE": str(folder)}
    there["GIT_INDEX_FILE"] = str(folder.with_suffix(".theirs"))
    git(folder, "read-tree", commit, **there)
    changed = git(folder, "diff", "--name-status", "--ignore-submodules", **there)
    return changed + git(folder, "ls-files", "--others", **there)


def test_each_change_is_a_commit_of_who_made_it(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "dirty\n"}, COMMITTED)
    history.turn("writer", {"a.txt": "one\n"})
    history.turn("reader", {})
    history.between({"b.py": None})
    history.turn("tester", {"test_a.py": "def test(): pass\n"})
    history.ended()
    made = exported(history)
    assert subjects(history) == [
        "somebody: first",
        "codex-multi-role: Changes before the run",
        "writer: writer: writer did it",
        "codex-multi-role: Changes between turns: by a check or a person",
        "tester: tester: tester did it",
    ]
    before, written, _, tested = made.commits
    for commit, state in ((before, history.states[0]), (written, history.states[1]), (tested, history.states[4])):
        assert differences(history, commit, state, tmp_path / commit) == ""
    trailers = git(history.workspace, "log", "-1", "--format=%(trailers:unfold)", BRANCH)
    assert trailers.strip() == "Run: first\nFlow: own\nTurn: tester 1"


def test_nothing_of_the_owner_changes(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "dirty\n"}, COMMITTED)
    for hook in ("reference-transaction", "post-commit", "pre-commit"):
        write_files(history.workspace / ".git/hooks", {hook: Program(f"#!/bin/sh\ntouch {tmp_path}/hooked\nexit 1\n")})
    git(history.workspace, "add", "a.txt")
    git(history.workspace, "config", "commit.gpgSign", "true")
    history.turn("writer", {"b.py": "b = 2\n"})
    history.ended()
    before = git(history.workspace, "status", "--porcelain=v2", "--branch")
    index = (history.workspace / ".git/index").read_bytes()
    exported(history)
    assert (history.workspace / ".git/index").read_bytes() == index
    assert git(history.workspace, "status", "--porcelain=v2", "--branch") == before
    assert not (tmp_path / "hooked").exists()


def test_run_from_elsewhere_names_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one around the current folder counts, and the one that is given."""
    history = History(tmp_path, {}, {"a.txt": "one\n"})
    history.turn("writer", {"a.txt": "two\n"})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="was on another machine"):
        exported(history)
    assert not git(history.workspace, "branch", "--list", BRANCH)
    monkeypatch.chdir(history.workspace)
    assert exported(history).is_new


def test_export_again_gives_the_same_commits(tmp_path: Path) -> None:
    history = History(tmp_path, {}, COMMITTED)
    history.turn("writer", {"a.txt": "1\n"})
    first = exported(history)
    assert (first.is_new, exported(history).is_new) == (True, False)
    history.turn("writer", {"a.txt": "2\n"})
    longer = exported(history)
    assert (longer.is_new, longer.commits[0]) == (True, first.tip)


def test_branch_of_somebody_else_stays(tmp_path: Path) -> None:
    history = History(tmp_path, {}, COMMITTED)
    history.turn("writer", {"a.txt": "1\n"})
    git(history.workspace, "commit", "-q", "--allow-empty", "-m", "mine")
    for branch, message in (("main", "is not an earlier export"), ("..", "cannot be the name of a branch")):
        with pytest.raises(UsageError, match=message):
            exported(history, branch)
    git(history.workspace, "branch", "base", "HEAD~")
    with pytest.raises(UsageError, match="is not an earlier export"):
        exported(history, "base")
    exported(history, "held")
    git(history.workspace, "symbolic-ref", "HEAD", "refs/heads/held")
    history.turn("writer", {"a.txt": "2\n"})
    with pytest.raises(UsageError, match="is checked out"):
        exported(history, "held")


def test_copies_are_side_branches_that_are_merged(tmp_path: Path) -> None:
    history = History(tmp_path, {}, COMMITTED)
    for key in ("write.1.0", "write.1.1"):
        history.copied(key)
    history.turn("writer", {"a.txt": "1\n"}, "write.1.0")
    history.turn("writer", {"a.txt": "1\n2\n"}, "write.1.0")
    history.turn("other", {"d.txt": "d\n"}, "write.1.1")
    history.merged("write.1.1")
    history.merged("write.1.0")
    history.ended()
    made = exported(history)
    merges = git(history.workspace, "log", "--merges", "--format=%s", BRANCH).splitlines()
    assert merges == ["Merge the copy write.1.0", "Merge the copy write.1.1"]
    assert git(history.workspace, "blame", "--porcelain", BRANCH, "--", "a.txt").count("author writer") == 2
    assert differences(history, made.tip, history.states[-1], tmp_path / "end") == ""


STEP = 97
EXPORT = """
from pathlib import Path
from codex_multi_role.extensions.results.run_history import history_of
from codex_multi_role.extensions.results.exporting import export_branch, start_of
from codex_multi_role.run_folder import RunFolder

history = history_of(RunFolder(Path(sys.argv[1])))
export_branch(history, "agents/run", *start_of(history, None))
"""


def test_killed_anywhere_the_branch_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    history = History(tmp_path, {"a.txt": "dirty\n"}, COMMITTED)
    history.turn("writer", {"a.txt": "1\n"})
    old = exported(history).tip
    history.turn("tester", {"b.py": None})
    new = exported(history, "other").tip
    before = git(history.workspace, "status", "--porcelain=v2", "--branch")
    at = 1
    while is_killed(EXPORT, history.run.path, at=at):
        assert git(history.workspace, "rev-parse", BRANCH).strip() in (old, new), at
        assert git(history.workspace, "status", "--porcelain=v2", "--branch") == before
        assert exported(history).tip == new
        git(history.workspace, "update-ref", f"refs/heads/{BRANCH}", old)
        at += STEP
    assert at > 50
    assert git(history.workspace, "rev-parse", BRANCH).strip() == new


def test_submodule_stays_at_its_commit(tmp_path: Path) -> None:
    history = History(tmp_path, {}, COMMITTED, submodule={"lib.py": "lib = 1\n"})
    history.turn("writer", {"a.txt": "1\n", f"{SUBMODULE}/lib.py": "lib = 2\n"})
    history.ended()
    exported(history)
    assert git(history.workspace, "diff", "--name-only", "main", BRANCH).split() == ["a.txt"]
