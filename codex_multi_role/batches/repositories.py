"""The repositories of goals: a mirror of each for the whole batch, and a clone of it for each goal."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.batches.planned_runs import repository_names
from codex_multi_role.errors import StorageError, UsageError
from codex_multi_role.host.atomic import make_folder, storage_errors
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.integrations.pull_request.user_programs import UserPrograms

CLONE_SECONDS = 1800.0
LOOK_SECONDS = 0.2
HINT = "Check the address, and that `git clone` of it works in a terminal without asking for a password."


def clone(address: str, ref: str | None, mirrors: Path, workspace: Path) -> None:
    """Clone the repository at ``address`` to ``workspace`` with ``ref`` checked out, unless it is there already.

    The clone shares no files with others that git would change. Git runs as in the user's terminal, with their
    settings and credentials. Raises `UsageError`, `StorageError`.
    """
    if workspace.exists():
        return
    git = _Git(make_folder(mirrors), address)
    name, digest = next(iter(repository_names([address]))), hashlib.sha256(address.encode()).hexdigest()[:12]
    mirror = mirrors / f"{name}-{digest}.git"
    with _alone(mirror.with_suffix(".lock")):
        if not mirror.exists():
            _in_one_step(mirror, lambda path: git.run("clone", "--quiet", "--mirror", "--", address, str(path)))
    make_folder(workspace.parent)
    _in_one_step(workspace, lambda path: _check_out(git, mirror, ref, path))


class _Git:
    """Git as the user has it, in ``folder``; ``address`` is what its errors are about."""

    def __init__(self, folder: Path, address: str) -> None:
        self.address = address
        self._programs = UserPrograms(folder, folder, Redactor(os.environ))

    def run(self, *arguments: str) -> None:
        done = self._programs.run(["git", *arguments], CLONE_SECONDS)
        if done.returncode != 0:
            complaint = self._programs.complaint(done)
            raise UsageError(f"the repository {self.address} was not cloned: {complaint}", HINT)


def _check_out(git: _Git, mirror: Path, ref: str | None, path: Path) -> None:
    git.run("clone", "--quiet", "--no-checkout", "--", str(mirror), str(path))
    git.run("-C", str(path), "remote", "set-url", "origin", git.address)
    git.run("-C", str(path), "checkout", "--quiet", *([ref] if ref else []), "--")


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
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + CLONE_SECONDS
        while not _locked(descriptor):
            if time.monotonic() > end:
                raise StorageError(f"another process has held {path} for {CLONE_SECONDS:.0f} s", "Try again later.")
            time.sleep(LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
