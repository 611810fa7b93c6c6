"""The user's git repository around a workspace: only worktrees are added and removed there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_multi_role.errors import StorageError
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.workspace.conversion import smudge_files
from codex_multi_role.workspace.created_files import folders_below
from codex_multi_role.workspace.git import NOT_THERE, ConfiguredGit, FilteringGit, Git, UserGit, last_words


@dataclass(frozen=True)
class Repository:
    """The repository with the work tree ``top``. ``git_dir`` is the one that all its worktrees share."""

    top: Path
    git_dir: Path

    @classmethod
    def around(cls, root: Path) -> Repository | None:
        """The repository that contains ``root``; None if it is missing or broken, or if it ignores ``root``.

        Raises UsageError if git is missing, StorageError if it fails.
        """
        top = top_around(root)
        if top is None:
            return None
        git = UserGit(top / ".git", top)
        if not git.works() or (root != top and _ignores(git, root.relative_to(top))):
            return None
        return cls(top, git.common_dir.resolve())

    @property
    def git(self) -> Git:
        return UserGit(self.top / ".git", self.top)

    def checked_out(self) -> str:
        """The checked-out commit, empty before the first one."""
        found = self.git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1))
        return found.stdout.decode().strip()

    def has(self, commit: str) -> bool:
        found = self.git.run("cat-file", "-e", f"{commit}^{{commit}}", allowed=(0, 1, NOT_THERE))
        return found.returncode == 0

    def branch(self) -> str:
        """The checked-out branch, also before its first commit; empty if none is."""
        found = self.git.run("symbolic-ref", "--quiet", "--short", "HEAD", allowed=(0, 1)).stdout
        return os.fsdecode(found.removesuffix(b"\n"))

    def head(self) -> str:
        """The checked-out commit; before the first one, a new empty commit that no branch holds."""
        if found := self.checked_out():
            return found
        tree = self.git.run("hash-object", "-t", "tree", "-w", "--stdin").stdout.decode().strip()
        return self.git.run("commit-tree", tree, "-m", "before the first commit").stdout.decode().strip()

    def users_ignore_file(self) -> Path:
        """The file that ``core.excludesFile`` names, or git's default for it; relative to ``top``."""
        git = FilteringGit(self.top / ".git", self.top)
        found = git.run("config", "--null", "--type=path", "--get", "core.excludesFile", allowed=(0, 1)).stdout
        if found:
            return self.top / os.fsdecode(found.rstrip(b"\0"))
        settings = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '')}/.config"
        return self.top / settings / "git" / "ignore"

    def tracked_though_ignored(self, root: Path, more: Iterable[str] = ()) -> list[str]:
        """The tracked files below ``root`` that the user's git, or one of the patterns ``more``, would ignore.

        They are relative to ``root``, as in `skipped`.
        """
        patterns = (f"--exclude={pattern}" for pattern in more)
        return self._below(root, self._indexed(root, "--ignored", "--exclude-standard", *patterns))

    def skipped(self, root: Path) -> list[str]:
        """The tracked files below ``root`` that git does not look at: those outside of a sparse checkout, and such."""
        listed = self._indexed(root, "-t")
        return self._below(root, [entry[2:] for entry in listed if entry.startswith("S ")])

    def _indexed(self, root: Path, *options: str) -> list[str]:
        place = f":(literal){root.relative_to(self.top)}"
        git = FilteringGit(self.top / ".git", self.top)
        return _separated(git.run("ls-files", "--cached", "-z", *options, "--", place).stdout)

    def _below(self, root: Path, paths: Iterable[str]) -> list[str]:
        """``paths`` of the repository relative to ``root``."""
        below = root.relative_to(self.top)
        return [path.removeprefix(f"{below}/") if below.parts else path for path in paths]

    def tracked_around(self, root: Path) -> list[str]:
        """The tracked files outside ``root``, relative to ``top``."""
        below = root.relative_to(self.top)
        return self._list("--", ".", f":(exclude,literal){below}") if below.parts else []

    def uncommitted(self, left_out: Path, root: Path | None = None) -> list[str]:
        """The files that differ from the checked-out commit, outside ``left_out``: what `git add --all` would change.

        They are those below ``root``, by default ``top``, and relative to it. The user's index is not refreshed. Files
        that git does not look at are left out, whatever the index has for them: that they are missing is no deletion.
        """
        root = root or self.top
        below = root.relative_to(self.top)
        outside = [f":(exclude,literal){left_out.relative_to(self.top)}"] if left_out.is_relative_to(self.top) else []
        options = ("--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty", "--no-renames")
        listed = ConfiguredGit(self.top / ".git", self.top).run(
            "status", *options, "--", f":(literal){below}", *outside
        )
        found, skipped = [entry[3:] for entry in _separated(listed.stdout)], {*self.skipped(root)}
        return [path for path in self._below(root, found) if path not in skipped]

    def branch_problem(self, name: str) -> str:
        """Why no branch ``name`` can be created; empty if it can."""
        valid = self.git.run("check-ref-format", "--branch", name, allowed=(0, 1, NOT_THERE))
        if os.fsdecode(valid.stdout.removesuffix(b"\n")) != name:  # `@{-1}` stands for another name
            return f"'{name}' cannot be the name of a branch"
        listed = self.git.run("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/").stdout
        for existing in os.fsdecode(listed).splitlines():
            if existing == name:
                return f"the branch {name} already exists"
            if existing.startswith(f"{name}/") or name.startswith(f"{existing}/"):
                return f"the branch {name} cannot exist beside the branch {existing}"
        return ""

    def _list(self, *options: str) -> list[str]:
        return _separated(self.git.run("ls-files", "--cached", "-z", *options).stdout)


def where_it_works(record: Mapping[str, Any]) -> list[object]:
    """What is noted of a run that this machine recorded: without that, ``record`` may name anybody's repository."""
    return [record.get("run_id"), (record.get("repository") or {}).get("top")]


def top_around(root: Path) -> Path | None:
    """The top of the work tree that contains ``root``, whether or not git can read its repository."""
    places = (root, *root.parents)
    return next((top for top in places if (top / ".git").is_file() or (top / ".git" / "HEAD").exists()), None)


def _separated(listed: bytes) -> list[str]:
    return os.fsdecode(listed).split("\0")[:-1]


def repositories_below(root: Path, left_out: Path) -> tuple[Path, ...]:
    """The ``.git`` of every repository in subfolders of ``root``, outside caches and ``left_out``."""
    return tuple(here / ".git" for here, names in folders_below(root, {left_out}) if here != root and ".git" in names)


def add_worktree(git_dir: Path, path: Path, commit: str, branch: str = "") -> None:
    """Add a worktree at ``path``, detached at ``commit``; its index is filled, its files are not written.

    It is on ``branch`` instead, if that is given; a new one begins at ``commit``.
    """
    git = UserGit(git_dir, git_dir)
    place = ["--detach", str(path), commit]
    if branch:
        place = [str(path), branch] if has_branch(git_dir, branch) else ["-b", branch, "--no-track", str(path), commit]
    known = git_dir / "worktrees"
    with storage_errors(git_dir):
        known.mkdir(exist_ok=True)
    try:
        git.run("worktree", "add", "--quiet", "--no-checkout", *place)
    except StorageError:
        if known.exists():
            raise
        add_worktree(git_dir, path, commit, branch)  # another process forgot the last one meanwhile
        return
    with storage_errors(path):  # the links that git went through are ours
        named = Path((path / ".git").read_text().removeprefix("gitdir:").strip())
        (path / ".git").write_text(f"gitdir: {named.resolve()}\n")
    UserGit(path / ".git", path).run("read-tree", "HEAD")


def has_branch(git_dir: Path, name: str) -> bool:
    found = UserGit(git_dir, git_dir).run(
        "show-ref", "--verify", "--quiet", f"refs/heads/{name}", allowed=(0, 1, NOT_THERE)
    )
    return found.returncode == 0


def delete_branch(git_dir: Path, name: str, commit: str) -> None:
    """Delete the branch ``name`` if it is still at ``commit``."""
    UserGit(git_dir, git_dir).run("update-ref", "-d", f"refs/heads/{name}", commit, allowed=(0, 1, NOT_THERE))


def write_worktree(path: Path) -> None:
    """Write the files of the worktree at ``path``, converted as the user's configuration says; no hook runs.

    Raises `UsageError` for a file whose filter may not run.
    """
    ConfiguredGit(path / ".git", path).run("reset", "--hard", "--quiet")
    smudge_files(path)


def forget_worktree(git_dir: Path, path: Path) -> None:
    """Remove the worktree at ``path``, whose folder is already deleted, from the repository, and no other."""
    if not git_dir.is_dir():
        return
    options = ("--force", "--force", str(path))
    done = UserGit(git_dir, git_dir).run("worktree", "remove", *options, allowed=(0, NOT_THERE))
    if done.returncode and b"is not a working tree" not in done.stderr:
        raise StorageError(f"{git_dir} cannot remove its worktree {path}: {last_words(done.stderr)}")
    with suppress(OSError):  # git does it as well, but not through the links that it gets
        (git_dir / "worktrees").rmdir()


def has_own_commits(worktree: Path, commit: str) -> bool:
    """Whether ``worktree`` is at commits made since ``commit`` that no branch or tag holds."""
    git = UserGit(worktree / ".git", worktree)
    known = ("--not", commit, "--branches", "--tags", "--remotes")
    return bool(git.run("rev-list", "--max-count=1", "HEAD", *known, allowed=(0, NOT_THERE)).stdout)


def _ignores(git: Git, below: Path) -> bool:
    return git.run("check-ignore", "--quiet", str(below), allowed=(0, 1)).returncode == 0


def ignored_folders(root: Path) -> list[Path]:
    """The folders below ``root`` that git ignores as a whole, relative to it. Raises UsageError, StorageError."""
    if repository := Repository.around(root):
        return _ignored_folders(repository.git, root.relative_to(repository.top))
    if not (root / ".gitignore").is_file():
        return []
    with tempfile.TemporaryDirectory(prefix="ignored-") as folder:
        git = Git(Path(folder), root)
        git.initialize()
        return _ignored_folders(git, Path())


def _ignored_folders(git: Git, below: Path) -> list[Path]:
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z", "--", f":(literal){below}")
    listed = os.fsdecode(git.run("ls-files", *options).stdout).split("\0")
    return [Path(path).relative_to(below) for path in listed if path.endswith("/") and Path(path) != below]
