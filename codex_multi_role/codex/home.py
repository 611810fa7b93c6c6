"""The user's own Codex home: may Codex write to it, its login, its threads, and which process starts in it first."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event

from codex_multi_role.codex.approvals import ApprovalPolicy
from codex_multi_role.codex.child import Launch
from codex_multi_role.codex.client import RoleClient
from codex_multi_role.codex.codex_settings import app_server_argv, needs_user_home, user_home
from codex_multi_role.codex.thread import ThreadSettings
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.errors import CodexUnavailable, StorageError
from codex_multi_role.host.programs import program_path

LEAST_BYTES = 4_000_000
"""Codex writes 3.1 MB into a new home (measured)."""

LOCK_SECONDS = 60.0
LOOK_SECONDS = 0.05


@contextmanager
def sole_start(home: Path, stopping: Event | None = None) -> Iterator[None]:
    """Keep other processes of ours from their first start in ``home`` during the block.

    Codex processes that create its databases at the same time fail (measured). The lock is on the parent folder, which
    exists even before Codex creates the home; the kernel releases it when this process ends. After waiting
    `LOCK_SECONDS`, or if it cannot lock, a process starts anyway. ``stopping`` ends the wait.
    """
    try:
        descriptor = os.open(home.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield
        return
    try:
        _wait_for_lock(descriptor, stopping or Event())
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, stopping: Event) -> None:
    end = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < end and not stopping.is_set():
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            stopping.wait(LOOK_SECONDS)
        except OSError:  # a file system without locks
            return


def require_user_home(environment: Mapping[str, str]) -> None:
    """Check that the home, or the folder in which Codex would create it, is writable. Raises `CodexUnavailable`."""
    home = user_home(environment)
    try:
        _try_to_write(next(folder for folder in (home, *home.parents) if folder.exists()))
    except OSError as error:
        raise CodexUnavailable(
            f"Codex's home {home} cannot be written: {error.strerror or error}",
            "Make it writable, free some space, set HOME, or name another one with CODEX_HOME and log in there "
            "(`codex-multi-role codex login`). Your own provider (-c) or --playbook needs no login.",
        ) from error


def _try_to_write(folder: Path) -> None:
    """Leaves nothing behind: the file has no name, or loses it at once."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        left = LEAST_BYTES
        while left > 0:
            left -= file.write(bytes(left))


def login_state(codex: Path, settings: tuple[str, ...], version: str) -> str:
    """Who is logged in with these ``-c`` settings, as text. Raises `CodexUnavailable`, `CodexStartFailed`."""
    if needs_user_home(settings):
        require_user_home(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own_home = {} if needs_user_home(settings) else {"CODEX_HOME": name}
        environment = {**os.environ, "PATH": program_path(os.environ), **own_home}
        launch = Launch(app_server_argv(codex, settings), environment, folder, folder / "stderr.log")
        transport = AppServerTransport(launch, WireLog(folder / "events.jsonl", lambda text: text))
        client = RoleClient(transport, ThreadSettings(name, "read-only", "untrusted", None), ApprovalPolicy(), {})
        try:
            with nullcontext() if own_home else sole_start(user_home(os.environ)):
                return client.connect(version)
        finally:
            client.stop()


LOGIN_FILE = "auth.json"
"""Where Codex keeps a login, unless it uses the keyring of the system."""
THREADS = "sessions"


def copy_threads(home: Path, other: Path) -> None:
    """Copy all threads of a CODEX_HOME, which may be in use: the files alone are enough to fork them (measured).

    All are needed, because a forked thread refers to the file of its origin. Raises `StorageError`.
    """
    if not (home / THREADS).is_dir():
        return
    try:
        shutil.copytree(home / THREADS, other / THREADS, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise StorageError(f"the threads in {home} cannot be copied to {other}: {error}") from error
