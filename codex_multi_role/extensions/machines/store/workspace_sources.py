"""Where a run's workspace comes from, in words that any machine understands: a repository, or a bundle in the store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.store.pieces import capture
from codex_multi_role.extensions.machines.store.state_manifest import SUFFIX, read_file, read_pieces
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.workspace import Snapshots, Workspace
from codex_multi_role.workspace.cloning import clone, set_origin
from codex_multi_role.workspace.git import Git
from codex_multi_role.workspace.repository import Repository
from codex_multi_role.workspace.trees import write_commit

BRANCH = "main"
"""The branch of a workspace that was in no repository."""


class WorkspaceSource(BaseModel):
    """``repository``: the address of a git repository, or ``bundle``: the name of one in the store.

    ``ref``: a branch, tag or commit, by default what is checked out there. ``below``: the workspace's folder in it.
    ``origin``: the address that a bundle's repository had for its remote ``origin``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str = ""
    bundle: str = Field(default="", pattern=r"^(bundles/[0-9a-f]{64}\.json\.zlib)?$")
    ref: str = Field(default="", pattern=r"^([^-\s][^\s]*)?$")
    below: str = ""
    origin: str = ""

    @model_validator(mode="after")
    def _check(self) -> WorkspaceSource:
        if bool(self.repository) == bool(self.bundle):
            raise ValueError("a workspace is either in a repository or in a bundle")
        if self.repository.startswith("-") or _has_credentials(self.repository) or _has_credentials(self.origin):
            raise ValueError("the address of the repository contains credentials; git's credential helper knows them")
        if self.below and (PurePosixPath(self.below).is_absolute() or ".." in PurePosixPath(self.below).parts):
            raise ValueError(f"the folder {self.below} is not inside the repository")
        return self


@dataclass(frozen=True)
class BundledWorkspace:
    """``uncommitted``: how many files differ from the commit that was bundled; the bundle does not have them."""

    source: WorkspaceSource
    uncommitted: int


def bundle_workspace(store: Store, workspace: Path) -> BundledWorkspace:
    """Send the history of the repository around ``workspace`` as a bundle; without one, its files as one commit.

    Raises `UsageError`, `StorageError`.
    """
    root = workspace.resolve()
    with _scratch() as scratch:
        file = scratch / "bundle"
        repository = Repository.around(root)
        if repository is None or not repository.checked_out():
            _bundle_files(root, scratch / "snapshot.git", file)
            return BundledWorkspace(WorkspaceSource(bundle=_send(store, file), ref=BRANCH), 0)
        _require_history(repository)
        branch = repository.branch()
        named = [f"refs/heads/{branch}"] if branch else []
        repository.git.run("bundle", "create", "--quiet", str(file), "HEAD", *named)
        below = root.relative_to(repository.top).as_posix()
        source = WorkspaceSource(
            bundle=_send(store, file), ref=branch, below="" if below == "." else below, origin=_origin(repository)
        )
        return BundledWorkspace(source, len(repository.uncommitted(root / ".git")))


def make_workspace(source: WorkspaceSource, store: Store | None, target: Path) -> Path:
    """Clone ``source`` to ``target``, which must be new; returns the workspace in it. ``store`` has the bundles.

    Nothing asks for a password. Raises `UsageError` for a source that cannot be used, `StorageError`.
    """
    if target.exists() and any(target.iterdir()):
        raise UsageError(f"the folder {target} is not empty", "Name a new folder.")
    with _scratch() as scratch:
        address = source.repository or str(_receive(store, source.bundle, scratch / "bundle"))
        make_folder(target.parent)
        with storage_errors(target):
            partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _clone(source, address, partial)
            with storage_errors(target):
                partial.replace(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target / source.below


def _clone(source: WorkspaceSource, address: str, target: Path) -> None:
    name = source.repository or f"the bundled workspace {source.bundle}"
    clone(address, source.ref, target, name)
    if source.bundle:
        set_origin(target, source.origin)
    below = (target / source.below).resolve()
    if not (below.is_dir() and below.is_relative_to(target.resolve())):
        raise UsageError(f"{name} has no folder {source.below}", "Correct the name of the folder, or its ref.")


def _require_history(repository: Repository) -> None:
    """Raise `UsageError` for a shallow clone: a bundle of it cannot be cloned."""
    if repository.git.run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
        message = f"the repository {repository.top} is a shallow clone, which cannot be bundled"
        raise UsageError(message, "Run `git fetch --unshallow` there, or give the address of the repository.")


def _bundle_files(root: Path, git_dir: Path, file: Path) -> None:
    """Write the files of a folder that is in no repository as a bundle with one commit."""
    tree = Snapshots(git_dir, Workspace(root)).take()
    git = Git(git_dir, root)
    commit = write_commit(git, tree, (), message="the workspace as it was submitted\n")
    git.run("update-ref", f"refs/heads/{BRANCH}", commit)
    git.run("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    git.run("bundle", "create", "--quiet", str(file), "HEAD", f"refs/heads/{BRANCH}")


def _origin(repository: Repository) -> str:
    """The address of the remote ``origin``, so that a pull request can be created later; empty if it has secrets."""
    found = repository.git.run("config", "--get", "remote.origin.url", allowed=(0, 1)).stdout.decode().strip()
    return "" if _has_credentials(found) else found


def _has_credentials(address: str) -> bool:
    """Whether a password, or for HTTP any user, which may be a token, is in the address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return True
    return bool(parts.password or (parts.username and parts.scheme in ("http", "https")))


def _send(store: Store, file: Path) -> str:
    return store.put_named("bundles/", SUFFIX, capture(store, file, None)[1].model_dump_json().encode())


def _receive(store: Store | None, name: str, file: Path) -> Path:
    if store is None:
        raise UsageError("the workspace is in a store, but none is given", "Name the store that the goal was sent to.")
    with storage_errors(file), file.open("wb") as output:
        output.writelines(read_pieces(store, read_file(store, name)))
    return file


@contextmanager
def _scratch() -> Iterator[Path]:
    with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="codex-multi-role-") as name:
        yield Path(name)
