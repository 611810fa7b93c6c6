"""Where settings are found: in a folder and those above it, and in the user's own file.

Only the standard library is imported: the process guard runs without site-packages.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from codex_multi_role.host.user_cache import home_folder

SETTINGS_FILE = "codex-multi-role.yaml"
"""The file in which a folder keeps the options of the runs started in it or below it."""
PYPROJECT = "pyproject.toml"
TABLE = "codex-multi-role"
"""The table below ``[tool]`` of a `PYPROJECT` that holds settings."""
MAX_BYTES = 1024 * 1024
_TABLE_LINES = re.compile(
    rb"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?%b[\"']?[ \t]*[.\]].*(?:\n(?![ \t]*\[).*)*\n?" % TABLE.encode(),
    re.MULTILINE,
)


def user_file() -> Path:
    """The settings file of the user, whether or not it exists: in XDG_CONFIG_HOME, otherwise in ``~/.config``."""
    folder = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():
        folder = home_folder() / ".config"
    return folder / "codex-multi-role" / "config.yaml"


def exists(path: Path) -> bool:
    """Whether it can be seen that ``path`` exists. `Path.exists` raises below a folder that this user may not enter."""
    return os.path.exists(path)  # noqa: PTH110


def nearest_settings(start: Path) -> Path | None:
    """The settings file of ``start`` or of the nearest folder above it that has one.

    Raises `ValueError`, which names the file, for a ``pyproject.toml`` that cannot be parsed.
    """
    for folder in search_folders(start):
        if exists(folder / SETTINGS_FILE):
            return folder / SETTINGS_FILE
        try:
            if settings_table(folder / PYPROJECT) is not None:
                return folder / PYPROJECT
        except ValueError as error:
            raise ValueError(f"{folder / PYPROJECT}: {error}") from error
    return None


def search_folders(start: Path) -> Iterator[Path]:
    """``start`` and the folders above it, up to the top of its repository, otherwise up to the home folder.

    Outside both it is ``start`` alone. No folder counts that somebody else could have filled, nor any above it.
    """
    yield start
    home = home_folder()
    above: list[Path] = []
    for folder in (start, *start.parents):
        if folder != start:
            if not _is_own(folder):
                return
            above.append(folder)
        if _is_repository(folder / ".git") or folder == home:
            yield from above
            return


def _is_repository(git: Path) -> bool:
    """Whether it is more than the empty folder that Codex's sandbox leaves behind if its command is interrupted."""
    return os.path.isfile(git) or exists(git / "HEAD")  # noqa: PTH113 - as in `exists`


def _is_own(folder: Path) -> bool:
    """Whether only this user and root write to the folder, and no program keeps its temporary files there."""
    with suppress(OSError):
        status = folder.stat()
        strangers = status.st_mode & stat.S_IWOTH or status.st_uid not in (os.geteuid(), 0)
        return not strangers and not folder.samefile(tempfile.gettempdir())
    return False


def settings_table(pyproject: Path) -> Mapping[str, object] | None:
    """The settings in a ``pyproject.toml``, or None if it has none. Raises `ValueError` if it cannot be parsed.

    A symlink or a hard link is not read: its content could change where no run watches it.
    """
    with suppress(OSError):
        status = pyproject.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= MAX_BYTES:
            return table_in(pyproject.read_bytes())
    return None


def table_in(content: bytes) -> Mapping[str, object] | None:
    """The settings in the content of a ``pyproject.toml``, as `settings_table`."""
    if TABLE.encode() not in content:  # so most files are not parsed, and may be as broken as they like
        return None
    import tomllib  # here: every command imports this module

    try:
        tool = tomllib.loads(content.decode()).get("tool")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    table = tool.get(TABLE) if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def holds_settings(path: Path) -> bool:
    """Whether ``path`` is a ``pyproject.toml`` that sets options of the runs started beside it."""
    with suppress(ValueError):
        return path.name.casefold() == PYPROJECT and settings_table(path) is not None
    return False


def would_hold_settings(name: str, content: bytes) -> bool:
    """Whether ``content`` in a file ``name`` would set options of the runs started beside it."""
    with suppress(ValueError):
        return name.casefold() == PYPROJECT and table_in(content) is not None
    return False


def without_settings(content: bytes) -> bytes | None:
    """The content of a ``pyproject.toml`` without its settings; None if the rest would change, or is empty."""
    import tomllib  # as above

    cut = _TABLE_LINES.sub(b"", content)
    with suppress(ValueError, RecursionError):
        rest = tomllib.loads(content.decode())
        del rest["tool"][TABLE]
        if {"tool": {}, **tomllib.loads(cut.decode())} == rest and cut.strip():
            return cut
    return None
