"""Folders and what is in them, to be compared later, and workspaces with a run, in and outside git repositories."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.git_settings import FOLDER
from codex_multi_role.workspace.worktrees import Worktrees
from tests.support.disks import PERSON

Contents = dict[str, tuple[str, bytes]]
KEY = "duel.1.0"


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Program:
    """An executable file."""

    text: str


Content = str | bytes | Link | Program | None
"""What is at a path; None deletes it."""


def write_files(root: Path, files: Mapping[str, Content]) -> None:
    """Write ``files`` below ``root``, by relative path, and the folders that they are in."""
    for name, content in files.items():
        path = root / name
        path.unlink(missing_ok=True)
        if content is None:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case Link(target):
                path.symlink_to(target)
            case Program(text):
                path.write_text(text)
                path.chmod(0o755)
            case str():
                path.write_bytes(content.encode())
            case bytes():
                path.write_bytes(content)


def write_program(path: Path, text: str) -> Path:
    """Write the executable file ``path``; the path."""
    write_files(path.parent, {path.name: Program(text)})
    return path


def files_below(folder: Path) -> list[str]:
    """The files below ``folder``, relative to it, in order."""
    return sorted(files_of(folder))


def files_of(folder: Path, without: Collection[str] = ()) -> dict[str, bytes]:
    """The content of every file below ``folder`` by its relative path, except below folders named in ``without``."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    names = [path.relative_to(folder) for path in paths]
    return {name.as_posix(): (folder / name).read_bytes() for name in names if not {*without} & {*name.parts}}


def files_of_git(root: Path) -> dict[str, bytes]:
    """Those of the repository, without the folder of links that git gets instead of the repository's configuration."""
    return files_of(root / ".git", without=(FOLDER,))


def everything(*folders: Path) -> dict[str, str]:
    """Every file, link and mode below the folders, by absolute path: what must not change at all."""
    found = {}
    for path in (path for folder in folders for path in folder.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path)] = f"{path.lstat().st_mode:o} {content}"
    return found


def tree(folder: Path) -> dict[str, str]:
    """The text of every file and the target of every link below ``folder``, by relative path."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def git(folder: Path, *arguments: str) -> str:
    """Run git as `git_output`; what it prints, as text."""
    return git_output(folder, *arguments).decode()


def git_output(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git as the user has it, apart from the settings of whoever runs these tests; what it prints.

    Raises `subprocess.CalledProcessError` if git fails.
    """
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *PERSON, "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(
        command, cwd=folder, input=stdin, env=environment, check=True, capture_output=True, timeout=60
    ).stdout


def commit_all(folder: Path) -> None:
    """Make ``folder`` a repository with everything in it committed; a repository in it becomes a submodule."""
    git(folder, "init", "-q")
    git(folder, "-c", "advice.addEmbeddedRepo=false", "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")


def contents(root: Path) -> Contents:
    """Every file below ``root`` with its kind; run folders and git's own left out."""
    paths = [path for path in root.rglob("*") if not {".git", "runs"} & set(path.relative_to(root).parts)]
    return {str(path.relative_to(root)): _kind(path) for path in paths if path.is_symlink() or path.is_file()}


def _kind(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    return "executable" if path.stat().st_mode & stat.S_IXUSR else "file", path.read_bytes()


def nested_root(folder: Path) -> Path:
    """Where a workspace is two folders below ``folder``, so that a repository can begin above it."""
    return folder / "top" / "work"


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
    """A workspace outside any repository."""
    fill(root)


def whole_repository(root: Path) -> None:
    """A workspace that is a repository with one commit."""
    fill(root)
    commit_all(root)


def part_of_a_repository(root: Path) -> None:
    """A workspace in a repository that begins one folder above."""
    fill(root)
    top = root.parent
    write_files(top, {"above.txt": "above\n", "beside/tool.sh": Program("#!/bin/sh\n")})
    commit_all(top)


def before_the_first_commit(root: Path) -> None:
    """A workspace that is a repository without a commit."""
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
    (root / "old name.txt").rename(root / 'new é "name".txt')
    (root / "script.sh").chmod(0o755)
    write_files(root, {"gone.txt": None, "link": Link("binary.dat"), "deep/out": Link("/nowhere/at/all")})
    write_files(root, {"deep/er/x.py": "x = 1\n", "deep/run.sh": Program("#!/bin/sh\n")})


EDITED = {
    *("pkg/code.py", "crlf.txt", "binary.dat", "gone.txt", "old name.txt", 'new é "name".txt', "script.sh", "link"),
    *("deep/er/x.py", "deep/out", "deep/run.sh"),
}


def collectable(folder: Path) -> list[str]:
    """The files in ``folder``, hidden ones too, that a test runner, type checker or linter may take for a project's."""
    named = {"package.json", "go.mod", "Cargo.toml", "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"}
    suffixes = {".py", ".pyi", ".ipynb", ".js", ".ts", ".go", ".rs", ".rb", ".java"}
    found = (path for path in folder.rglob("*") if path.suffix in suffixes or path.name in named)
    return sorted(str(path.relative_to(folder)) for path in found if path.is_file())
