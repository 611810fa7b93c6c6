"""The user's folders (XDG base directories): a cache of what can be made again, and the state of runs."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from codex_multi_role.host.atomic import storage_errors, write_bytes

Noted = Literal["records", "trusted", "owned"]
"""What was noted: records that this machine wrote, settings that the user trusts, copies that runs here made."""
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


def user_state() -> Path:
    """The folder of this user's notes, and of the copies of workspaces. No role and no test may write it."""
    return user_folder("STATE", "", os.environ).resolve()


def note(kind: Noted, about: object, said: object = None) -> None:
    """Note for this user what is ``said`` ``about`` something, instead of what was before. Raises `StorageError`."""
    with storage_errors(place := _note(kind, about)):
        make_private(place.parent)
    write_bytes(place, _digest(said).encode())


def is_noted(kind: Noted, about: object, said: object = None) -> bool:
    """Whether that was noted: not by a role, a test or another user, and by nobody who wrote a folder elsewhere."""
    with suppress(OSError):
        return is_only_ours((place := _note(kind, about)).parent) and place.read_text() == _digest(said)
    return False


def _note(kind: Noted, about: object) -> Path:
    return user_state() / kind / _digest(about)


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


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
