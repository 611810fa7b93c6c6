"""Codex's stored threads, and copying them to another home."""

from __future__ import annotations

import shutil
from pathlib import Path

from codex_multi_role.errors import StorageError

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
