"""New Codex homes with ready-made databases: creating those takes over a quarter of a start's CPU seconds.

They are made once per binary by a process that starts in an empty home, without the user's settings, login or keys, and
that ends because it has no input. Every new home then gets a copy. If anything goes wrong, a home stays empty and Codex
fills it; Codex itself replaces a damaged database.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psutil

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.host.processes import Family
from codex_multi_role.host.programs import program_path
from codex_multi_role.host.user_cache import home_folder, is_only_ours, make_private, user_folder

DATABASES = "*.sqlite"
LOWEST_PRIORITY = 19
MAKING_SECONDS = 60.0
ENDING_SECONDS = 5.0
KEPT_SECONDS = 30 * 24 * 3600.0


def user_store(environment: Mapping[str, str]) -> Path:
    """The folder for the databases of the user's runs."""
    return user_folder("CACHE", "codex-homes", environment)


class WarmHomes:
    """Fills new homes for ``codex`` from ``store``, a folder that several runs may share.

    ``family`` marks the process that makes the databases.
    """

    def __init__(self, codex: Path, store: Path, family: Family) -> None:
        self._codex = codex
        self._family = family
        self._databases = store / _identity(codex)

    def fill(self, home: Path) -> None:
        """Copy all databases into ``home`` if it is an empty folder; otherwise leave it as it is."""
        copy = home.with_name(f".{home.name}.new")
        with suppress(OSError):
            if any(home.iterdir()):
                return
            if self._databases.exists() and is_only_ours(self._databases.parent):
                shutil.rmtree(copy, ignore_errors=True)  # left incomplete by a kill
                shutil.copytree(self._databases, copy)
                copy.replace(home)
        shutil.rmtree(copy, ignore_errors=True)

    @contextmanager
    def made_meanwhile(self) -> Iterator[None]:
        """Make missing databases while the caller works; discard them if they are not ready when the block ends."""
        with ExitStack() as stack:
            if not self._databases.exists():
                with suppress(OSError):
                    stack.enter_context(self._making())
            yield

    @contextmanager
    def _making(self) -> Iterator[None]:
        """Raises `OSError` when it cannot start."""
        scratch = _new_scratch(self._databases.parent)
        child = self._start_in(scratch / "home")
        work = (child, scratch, self._databases)
        keeper = threading.Thread(target=_keep, args=work, name="codex-databases", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            child.kill()  # whatever it started carries the mark
            with suppress(subprocess.TimeoutExpired):
                child.wait(ENDING_SECONDS)
            keeper.join(ENDING_SECONDS)

    def _start_in(self, home: Path) -> subprocess.Popen[bytes]:
        home.mkdir()
        environment = {"HOME": str(home_folder()), "PATH": program_path(os.environ), "CODEX_HOME": str(home)}
        child = subprocess.Popen(
            app_server_argv(self._codex, ()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=self._family.marked(environment),
            start_new_session=True,
        )
        with suppress(psutil.Error):  # the roles' processes come first
            psutil.Process(child.pid).nice(LOWEST_PRIORITY)
        return child


def _identity(codex: Path) -> str:
    """Identify the binary by its size and time, because another one may need other databases."""
    status = codex.stat()
    return f"databases-{status.st_size:x}-{status.st_mtime_ns:x}"


def _new_scratch(store: Path) -> Path:
    """Create a folder beside the future databases, after removing old entries there. Raises `OSError`."""
    make_private(store)
    for entry in store.iterdir():  # other binaries', or left by a kill; made again if still needed
        if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix="making-", dir=store))


def _keep(child: subprocess.Popen[bytes], scratch: Path, databases: Path) -> None:
    """Move the databases of ``child`` into place, closed and in one step, if it exits with 0."""
    import sqlite3  # imported here: a run that finds the databases does not need it

    with suppress(OSError, sqlite3.Error, subprocess.TimeoutExpired):
        if child.wait(MAKING_SECONDS) == 0:
            made = scratch / "made"
            made.mkdir()
            for database in (scratch / "home").glob(DATABASES):
                with closing(sqlite3.connect(database)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                database.rename(made / database.name)
            made.rename(databases)
    shutil.rmtree(scratch, ignore_errors=True)
