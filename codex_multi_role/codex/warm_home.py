"""Codex homes that begin with their databases: creating those is over a quarter of a start's CPU seconds.

They are made once for each binary, by a process that starts in an empty home, without a setting, a login or a key of
the user's, and that ends as it has no input. From then on every new home gets a copy. Whatever goes wrong with that
leaves a home empty, and Codex to fill it; a damaged database Codex replaces itself.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psutil

from codex_multi_role.codex.codex_settings import app_server_argv
from codex_multi_role.processes import Family
from codex_multi_role.programs import program_path

DATABASES = "*.sqlite"
LOWEST_PRIORITY = 19
MAKING_SECONDS = 60.0
ENDING_SECONDS = 5.0
KEPT_SECONDS = 30 * 24 * 3600.0


def user_store(environment: Mapping[str, str]) -> Path:
    """Where the user's runs keep the databases: a folder of the user's cache (XDG base directories).

    Without a home it is one that cannot be made.
    """
    named = Path(environment.get("XDG_CACHE_HOME", ""))
    cache = named if named.is_absolute() else Path(environment.get("HOME") or os.devnull) / ".cache"
    return cache / "codex-multi-role" / "codex-homes"


class WarmHomes:
    """New homes for ``codex``, filled from ``store``, a folder that several runs may share.

    ``family``: what marks the process that makes the databases.
    """

    def __init__(self, codex: Path, store: Path, family: Family) -> None:
        self._codex = codex
        self._family = family
        self._databases = store / _identity(codex)
        self._missed = False

    def fill(self, home: Path) -> None:
        """Give ``home`` all the databases if it is an empty folder, or leave it as it is."""
        copy = home.with_name(f".{home.name}.new")
        with suppress(OSError):
            if any(home.iterdir()):
                return
            self._missed = not self._databases.exists()
            if not self._missed and _only_ours(self._databases.parent):
                shutil.rmtree(copy, ignore_errors=True)  # a kill left it half made
                shutil.copytree(self._databases, copy)
                copy.replace(home)
        shutil.rmtree(copy, ignore_errors=True)

    @contextmanager
    def made_meanwhile(self) -> Iterator[None]:
        """Make the databases if `fill` missed them, while the caller works; what is not done by its end is dropped."""
        with ExitStack() as stack:
            if self._missed:
                with suppress(OSError):
                    stack.enter_context(self._making())
            yield

    @contextmanager
    def _making(self) -> Iterator[None]:
        """Raises `OSError` when it cannot begin."""
        scratch = _new_scratch(self._databases.parent)
        child = self._start_in(scratch / "home")
        work = (child, scratch, self._databases)
        keeper = threading.Thread(target=_keep, args=work, name="codex-databases", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            child.kill()  # what it may have begun bears the mark
            with suppress(subprocess.TimeoutExpired):
                child.wait(ENDING_SECONDS)
            keeper.join(ENDING_SECONDS)

    def _start_in(self, home: Path) -> subprocess.Popen[bytes]:
        home.mkdir()
        environment = {"HOME": str(Path.home()), "PATH": program_path(os.environ), "CODEX_HOME": str(home)}
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
    """Another binary may want other databases; an updated one has another size or time."""
    status = codex.stat()
    return f"databases-{status.st_size:x}-{status.st_mtime_ns:x}"


def _only_ours(folder: Path) -> bool:
    """Whether nobody else can write there: Codex takes the databases for its own. Raises `OSError`."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _new_scratch(store: Path) -> Path:
    """A folder beside the databases to be, once what is old there is gone. Raises `OSError`."""
    store.parent.mkdir(parents=True, exist_ok=True)
    store.mkdir(mode=0o700, exist_ok=True)
    if not _only_ours(store):
        raise PermissionError(f"others can write {store}")
    for entry in store.iterdir():  # other binaries', and what kills left; whoever still needs one makes it again
        if time.time() - entry.stat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix="making-", dir=store))


def _keep(child: subprocess.Popen[bytes], scratch: Path, databases: Path) -> None:
    """Once ``child`` has ended well, put its databases in place, closed and in one step."""
    import sqlite3  # here: a run that finds the databases has no use for it

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
