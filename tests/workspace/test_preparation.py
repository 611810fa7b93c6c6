"""What a fresh copy needs is copied or made, made once for the same files, and never part of the result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from codex_multi_role.errors import SetupFailed, UsageError
from codex_multi_role.workspace import Snapshots, Workspace, Worktrees
from codex_multi_role.workspace.commands import no_sandbox
from codex_multi_role.workspace.preparation import SETUP_OUTPUT, STORE, Needs, Preparation, forget_setups
from tests.support.workspaces import Link, commit_all, write_files

pytestmark = pytest.mark.real

MAKE = "echo run >> ../ran; mkdir -p .venv/bin; echo home=$PWD > .venv/cfg; ln -s $PWD/a.txt .venv/bin/a; echo 1 > made"
Run = Callable[..., Worktrees]


def _worktrees(root: Path, *, copy: tuple[str, ...] = (), setup: str = "", seconds: float = 20) -> Worktrees:
    (root / "runs/r1").mkdir(parents=True, exist_ok=True)
    workspace = Workspace(root, (root / "runs",))
    copies = root / "runs/r1/worktrees"
    variables = {"PATH": "/usr/bin:/bin", "API_KEY": "secret", "VIRTUAL_ENV": sys.prefix}
    preparation = Preparation(
        Needs(copy, setup), workspace, copies, variables, no_sandbox, seconds, lambda text: text.replace("hunter2", "*")
    )
    return Worktrees(copies, workspace, Snapshots(root / "runs/r1/.snapshots", workspace), "r1", preparation)


def _project(root: Path) -> Path:
    write_files(root, {"a.txt": "a\n", ".gitignore": ".env\n.venv\n/runs\n"})
    commit_all(root)
    (root / ".env").write_text("KEY=1\n")
    return root


def _made(worktrees: Worktrees, key: str) -> Path:
    root = worktrees.create(key).workspace.root
    worktrees.prepare(key)
    return root


def _runs(worktrees: Worktrees, *keys: str) -> int:
    """How many of the copies ran the setup `MAKE`."""
    roots = (worktrees.open(key).workspace.root for key in keys)
    return sum((root.parent / "ran").exists() for root in roots)


def test_ignored_files_links_and_folders_are_copied(tmp_path: Path) -> None:
    project = _project(tmp_path)
    write_files(project, {"conf/deep/x.cfg": "x\n", "conf/link": Link("/nowhere")})
    copy = _made(_worktrees(project, copy=(".env", "conf/**/*.cfg", "conf/l*", "*.missing")), "duel.1.0")
    assert (copy / ".env").read_text() == "KEY=1\n"
    assert (copy / "conf/deep/x.cfg").read_text() == "x\n"
    assert (copy / "conf/link").readlink() == Path("/nowhere")


def test_missing_file_is_one_warning(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), copy=(".env", "*.missing"))
    worktrees.create("duel.1.0")
    assert worktrees.prepare("duel.1.0") == [f"workspace.copy: *.missing is not in {tmp_path}"]
    worktrees.create("duel.1.1")
    assert worktrees.prepare("duel.1.1") == []


def test_existing_files_git_and_runs_are_not_copied(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), copy=("*",))
    copy = worktrees.create("duel.1.0").workspace.root
    (tmp_path / "a.txt").write_text("newer\n")
    worktrees.prepare("duel.1.0")
    assert (copy / "a.txt").read_text() == "a\n"
    assert (copy / ".env").exists()
    assert not (copy / "runs").exists()
    assert (copy / ".git").is_file()


def test_folder_around_the_runs_is_copied_without_them(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), copy=("build",))
    assert worktrees._preparation is not None
    (runs := tmp_path / "build/runs").mkdir(parents=True)
    root = worktrees.create("duel.1.0").workspace.root
    (runs / "run.json").write_text("{}")
    (tmp_path / "build/kept").write_text("k")
    preparation = replace(worktrees._preparation, source=Workspace(tmp_path, (runs,)))
    copy = worktrees.open("duel.1.0")
    assert preparation.prepare(copy.workspace, copy.snapshots, tmp_path / "runs/r1") == []
    assert [path.name for path in (root / "build").iterdir()] == ["kept"]


@pytest.mark.parametrize("glob", ["../outside", "/etc/hosts", "out/secret", "x/../../a"])
def test_copy_from_outside_is_refused(tmp_path: Path, glob: str) -> None:
    write_files(tmp_path, {"outside/secret": "s"})
    (project := tmp_path / "project").mkdir()
    (_project(project) / "out").symlink_to("../outside")
    worktrees = _worktrees(project, copy=(glob,))
    worktrees.create("duel.1.0")
    with pytest.raises(UsageError, match="is outside the workspace"):
        worktrees.prepare("duel.1.0")


def test_nothing_is_copied_through_a_link_in_the_copy(tmp_path: Path) -> None:
    """A role may have written the link."""
    project = _project(tmp_path)
    (outside := tmp_path / "runs/outside").mkdir(parents=True)
    worktrees = _worktrees(project, copy=("conf/secret",))
    (worktrees.create("duel.1.0").workspace.root / "conf").symlink_to(outside)
    write_files(project, {"conf/secret": "s"})
    worktrees.prepare("duel.1.0")
    assert list(outside.iterdir()) == []


def test_environment_is_in_no_snapshot_or_merge(tmp_path: Path) -> None:
    """Not even if git does not ignore it, or a role has it re-included or changes it; what it changed is restored."""
    project = _project(tmp_path)
    (project / "open.cfg").write_text("not ignored\n")
    commit = "echo 2 >> a.txt; echo gen > generated; mkdir -p src; echo 3 > src/made"
    worktrees = _worktrees(project, copy=(".env", "*.cfg"), setup=commit)
    (project / "open.cfg").unlink()
    copy = worktrees.create("duel.1.0")
    (project / "open.cfg").write_text("not ignored\n")
    root = copy.workspace.root
    told = worktrees.prepare("duel.1.0")
    assert told == ["the setup changed files that git tracks; they were restored: a.txt"]
    assert copy.snapshots.take() == copy.base
    write_files(root, {".gitignore": "!.env\n!generated\n", ".env": "KEY=2\n", "src/new": "new\n"})
    tree = copy.snapshots.take(force=[".env", "src/made"])
    assert copy.snapshots.changed_paths(copy.base, tree) == [".gitignore", "src/new"] or (
        copy.snapshots.changed_paths(copy.base, tree) == [".gitignore"]
    )
    merged = worktrees.merge("duel.1.0")
    assert merged.conflicts == ()
    assert set(merged.paths) <= {".gitignore", "src/new"}
    assert (project / ".env").read_text() == "KEY=1\n"
    assert not (project / "generated").exists()


def test_setup_runs_once_for_the_same_files(tmp_path: Path) -> None:
    """The second copy gets what it made, with its own folder in texts and links."""
    worktrees = _worktrees(_project(tmp_path), copy=(".env",), setup=MAKE)
    first, second = _made(worktrees, "duel.1.0"), _made(worktrees, "duel.1.1")
    assert _runs(worktrees, "duel.1.0", "duel.1.1") == 1
    for root in (first, second):
        assert (root / ".venv/cfg").read_text() == f"home={root}\n"
        assert (root / ".venv/bin/a").readlink() == root / "a.txt"
        assert (root / "made").read_text() == "1\n"
        assert (root / ".env").read_text() == "KEY=1\n"
    assert worktrees.open("duel.1.1").snapshots.take() == worktrees.open("duel.1.1").base


@pytest.mark.parametrize("stale", ["file", "copied", "command"])
def test_setup_runs_again_for_other_files(tmp_path: Path, stale: str) -> None:
    project = _project(tmp_path)
    worktrees = _worktrees(project, copy=(".env",), setup=MAKE)
    _made(worktrees, "duel.1.0")
    if stale == "file":
        (project / "a.txt").write_text("b\n")
    elif stale == "copied":
        (project / ".env").write_text("KEY=2\n")
    else:
        worktrees = _worktrees(project, copy=(".env",), setup=f"{MAKE}; true")
    _made(worktrees, "duel.1.1")
    assert _runs(worktrees, "duel.1.0", "duel.1.1") == 2


def test_program_that_names_its_folder_is_not_reused(tmp_path: Path) -> None:
    """Nobody can change the path in a binary; in compiled Python it does not matter."""
    binary = MAKE + r"; printf '\0%s\0' $PWD > .venv/program"
    worktrees = _worktrees(_project(tmp_path), setup=binary)
    copies = [_made(worktrees, f"duel.1.{number}") for number in (0, 1)]
    assert _runs(worktrees, "duel.1.0", "duel.1.1") == 2
    assert all(str(root).encode() in (root / ".venv/program").read_bytes() for root in copies)
    worktrees = _worktrees(tmp_path, setup=binary.replace("program", "x.pyc"))
    for number in (2, 3):
        _made(worktrees, f"duel.1.{number}")
    assert _runs(worktrees, "duel.1.2", "duel.1.3") == 1


def test_copies_at_the_same_time_wait_for_one_setup(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), setup=MAKE)
    keys = [f"duel.1.{number}" for number in range(4)]
    for key in keys:
        worktrees.create(key)
    threads = [Thread(target=worktrees.prepare, args=(key,), name=key) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert _runs(worktrees, *keys) == 1
    assert all((worktrees.open(key).workspace.root / ".venv/cfg").exists() for key in keys)


def test_failed_setup_names_command_code_lines_and_output(tmp_path: Path) -> None:
    worktrees = _worktrees(
        _project(tmp_path), setup="for i in 1 2 3 4 5 6 7; do echo line $i; done; echo hunter2; exit 3"
    )
    worktrees.create("duel.1.0")
    with pytest.raises(SetupFailed) as error:
        worktrees.prepare("duel.1.0")
    output = tmp_path / "runs/r1/worktrees/duel.1.0" / SETUP_OUTPUT
    message = str(error.value)
    assert "exit 3` failed with exit code 3" in message
    assert "line 4\nline 5\nline 6\nline 7\n*" in message
    assert str(output) in error.value.hint
    assert output.read_text().startswith("line 1\n")
    assert "hunter2" not in message + output.read_text()
    assert "--no-test-sandbox" in error.value.hint


def test_setup_has_a_deadline_and_no_secrets(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), setup="env; sleep 60", seconds=0.5)
    worktrees.create("duel.1.0")
    with pytest.raises(SetupFailed, match="took longer than"):
        worktrees.prepare("duel.1.0")
    output = (tmp_path / "runs/r1/worktrees/duel.1.0" / SETUP_OUTPUT).read_text()
    assert "TMPDIR=" in output
    assert "secret" not in output
    assert "VIRTUAL_ENV" not in output


def test_failed_setup_is_repeated_in_the_same_folder(tmp_path: Path) -> None:
    """As for the worktree of a run that is resumed: nothing that the first attempt left becomes part of the result."""
    project = _project(tmp_path)
    worktrees = _worktrees(project, setup="echo left > rest; test -e ../fixed")
    copy = worktrees.create("duel.1.0")
    with pytest.raises(SetupFailed):
        worktrees.prepare("duel.1.0")
    (copy.workspace.root.parent / "fixed").touch()
    assert worktrees.prepare("duel.1.0") == []
    assert copy.snapshots.take() == copy.base


def test_results_of_setups_can_be_forgotten(tmp_path: Path) -> None:
    worktrees = _worktrees(_project(tmp_path), setup=MAKE)
    root = _made(worktrees, "duel.1.0")
    assert (tmp_path / "runs/r1/worktrees" / STORE).is_dir()
    forget_setups(tmp_path / "runs/r1/worktrees")
    assert not (tmp_path / "runs/r1/worktrees" / STORE).exists()
    assert (root / ".venv/cfg").exists()


def test_needs_are_false_without_any() -> None:
    assert not Needs()
    assert replace(Needs(), setup="true")
