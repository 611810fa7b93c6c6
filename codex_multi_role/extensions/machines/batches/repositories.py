"""The repositories of goals: a mirror of each for the whole batch, and a clone of it for each goal."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.machines.batches.planned_runs import repository_names
from codex_multi_role.host.atomic import make_folder, storage_errors, wait_for_lock
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.workspace.cloning import check_out, fetch, set_origin

CLONE_SECONDS = 1800.0
LOOK_SECONDS = 0.2
HINT = "Check the address, and that `git clone` of it works in a terminal without asking for a password."


def clone(address: str, ref: str | None, mirrors: Path, workspace: Path) -> None:
    """Clone the repository at ``address`` to ``workspace`` with ``ref`` checked out, unless it is there already.

    The clone shares no files with others that git would change. Git has the user's settings and credentials. Raises
    `UsageError`, `StorageError`.
    """
    if workspace.exists():
        return
    name, digest = next(iter(repository_names([address]))), hashlib.sha256(address.encode()).hexdigest()[:12]
    mirror = make_folder(mirrors) / f"{name}-{digest}.git"
    with _alone(mirror.with_suffix(".lock")):
        if not mirror.exists():
            _in_one_step(mirror, lambda path: _require(address, fetch(address, path, "--mirror")))
    make_folder(workspace.parent)
    _in_one_step(workspace, lambda path: _clone_mirror(mirror, address, ref, path))


def _clone_mirror(mirror: Path, address: str, ref: str | None, path: Path) -> None:
    _require(address, fetch(str(mirror), path))
    set_origin(path, address)
    _require(address, check_out(path, ref or ""))


def _require(address: str, problem: str) -> None:
    """Raise `UsageError` if there is a problem."""
    if problem:
        raise UsageError(f"the repository {address} was not cloned: {Redactor(os.environ)(problem)}", HINT)


def _in_one_step(target: Path, make: Callable[[Path], None]) -> None:
    """Let ``make`` create a folder that becomes ``target`` once it is complete."""
    part = target.with_name(f".{target.name}.part")
    with storage_errors(part):
        shutil.rmtree(part, ignore_errors=True)
        make(part)
        part.rename(target)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock, and hold it. Raises `StorageError`."""
    with storage_errors(path):
        file = path.open("a")
    with file:
        wait_for_lock(file, CLONE_SECONDS, LOOK_SECONDS)
        yield
