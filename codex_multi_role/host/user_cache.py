"""The user's folders (XDG base directories): a cache of what can be made again, and the state of runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

_USUAL = {"CACHE": ".cache", "STATE": ".local/state"}


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's home. Without one, as a user without a passwd entry may be, a path that cannot be created."""
    home = Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises without a home
    return home if home.is_absolute() else Path(os.devnull)


def expanded(path: str) -> Path:
    """``path`` with the home folder for ``~``. `Path.expanduser` raises for an unknown user; here it stays as it is."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def user_folder(kind: Literal["CACHE", "STATE"], name: str, environment: Mapping[str, str]) -> Path:
    """The folder for what has that name."""
    named = Path(environment.get(f"XDG_{kind}_HOME", ""))
    parent = named if named.is_absolute() else home_folder(environment) / _USUAL[kind]
    return parent / "codex-multi-role" / name


def trusted_folder() -> Path:
    """The folder of what this user said about settings files. No role and no test may write it."""
    return user_folder("STATE", "trusted", os.environ).resolve()


def make_private(folder: Path) -> None:
    """Create the folder. Raises `OSError`, also if others can write there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if not is_only_ours(folder):
        raise PermissionError(f"others can write {folder}")


def is_only_ours(folder: Path) -> bool:
    """Whether nobody else can write there: what is in it is trusted. Raises `OSError`."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
