"""Workspaces with a run, in and outside git repositories, and what is in them."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.worktrees import Worktrees

Contents = dict[str, tuple[str, bytes]]
KEY = "duel.1.0"


def git(folder: Path, *arguments: str) -> str:
    """Git as the user has it, apart from the settings of whoever runs these tests."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main")
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=60)
    return done.stdout.decode()


def contents(root: Path) -> Contents:
    """Every file below ``root`` with its kind; run folders and git's own left out."""
    paths = [path for path in root.rglob("*") if not {".git", "runs"} & set(path.relative_to(root).parts)]
    return {str(path.relative_to(root)): _kind(path) for path in paths if path.is_symlink() or path.is_file()}


def _kind(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    return "executable" if path.stat().st_mode & stat.S_IXUSR else "file", path.read_bytes()


def fill(root: Path) -> None:
    """A small project, one file of each kind."""
    (root / "pkg").mkdir(parents=True)
    (root / "pkg" / "code.py").write_text("".join(f"line {number}\n" for number in range(20)))
    (root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    (root / "binary.dat").write_bytes(bytes(range(256)))
    (root / "gone.txt").write_text("going\n")
    (root / "old name.txt").write_text("moves\n")
    (root / "script.sh").write_text("#!/bin/sh\n")
    (root / "link").symlink_to("crlf.txt")
    (root / ".gitignore").write_text("*.local\n")


def alone(root: Path) -> None:
    fill(root)


def whole_repository(root: Path) -> None:
    fill(root)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")


def part_of_a_repository(root: Path) -> None:
    fill(root)
    top = root.parent
    (top / "above.txt").write_text("above\n")
    (top / "beside").mkdir()
    (top / "beside" / "tool.sh").write_text("#!/bin/sh\n")
    (top / "beside" / "tool.sh").chmod(0o755)
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")


def before_the_first_commit(root: Path) -> None:
    fill(root)
    git(root, "init", "-q")


ARRANGEMENTS: list[Callable[[Path], None]] = [alone, whole_repository, part_of_a_repository, before_the_first_commit]


def open_run(root: Path, run_id: str = "r1") -> Worktrees:
    """The run ``runs/<run_id>`` of the workspace ``root``, as each process opens it."""
    run = root / "runs" / run_id
    if not run.exists():
        run.mkdir(parents=True)
        (root / "runs" / ".gitignore").write_text("*\n")
    workspace = Workspace(root, (root / "runs",))
    return Worktrees(run / "worktrees", workspace, Snapshots(run / ".snapshots", workspace), run_id)


def patch_of(root: Path) -> Path:
    """What the copy of `open_run` changed, after its merge."""
    return root / "runs" / "r1" / "worktrees" / KEY / "changes.patch"


def edit(root: Path) -> None:
    """A change of each kind."""
    (root / "pkg" / "code.py").write_text((root / "pkg" / "code.py").read_text() + "last line\n")
    (root / "crlf.txt").write_bytes(b"a\r\nB\r\nmixed\nno end")
    (root / "binary.dat").write_bytes(bytes(reversed(range(256))))
    (root / "gone.txt").unlink()
    (root / "old name.txt").rename(root / 'new é "name".txt')
    (root / "script.sh").chmod(0o755)
    (root / "link").unlink()
    (root / "link").symlink_to("binary.dat")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "x.py").write_text("x = 1\n")
    (root / "deep" / "out").symlink_to("/nowhere/at/all")
    (root / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (root / "deep" / "run.sh").chmod(0o755)


EDITED = {
    *("pkg/code.py", "crlf.txt", "binary.dat", "gone.txt", "old name.txt", 'new é "name".txt', "script.sh", "link"),
    *("deep/er/x.py", "deep/out", "deep/run.sh"),
}
