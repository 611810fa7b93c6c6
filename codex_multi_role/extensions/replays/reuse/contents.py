"""Digests of files and folders as a program finds them: their names, kinds and contents, with links followed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable
from fnmatch import translate
from pathlib import Path

MAX_FILES, MAX_BYTES = 2000, 32 * 1024 * 1024
ENVIRONMENTS = (".venv", "node_modules", ".tox", ".nox")
"""Folders with what is installed: like the programs of the machine, their contents are not compared."""
CACHES = ("__pycache__", ".*_cache", ".hypothesis")
_NOT_COMPARED = re.compile("|".join(map(translate, (*ENVIRONMENTS, *CACHES))))
_COMPILED = (".pyc", ".pyo")
_KIND, _KIND_AND_MODE = 0o170000, 0o177777


class TooMuchToCompare(Exception):
    """There are more files or bytes than are compared."""


class ContentDigest:
    """Adds up what is in folders, without ``.git``, `ENVIRONMENTS` and `CACHES`.

    ``is_read``: whether the contents count of what has that path below the first folder, and of all below it; names
    and kinds always count, with ``modes`` also the permissions. ``left_out``: folders that do not count.
    ``repositories``: those found below the first folder, whose contents always count.
    """

    def __init__(
        self, is_read: Callable[[str], bool] = lambda _: True, left_out: tuple[Path, ...] = (), *, modes: bool = False
    ) -> None:
        self._is_read, self._left_out = is_read, {str(folder) for folder in left_out}
        self._around_left_out = {str(above) for folder in left_out for above in folder.parents}
        self._counted_bits = _KIND_AND_MODE if modes else _KIND
        self._found, self._files, self._bytes = hashlib.sha256(), 0, 0
        self.repositories: list[Path] = []

    def hexdigest(self) -> str:
        return self._found.hexdigest()

    def note(self, *values: object) -> None:
        for value in values:
            known = str(value).encode(errors="surrogateescape")
            self._found.update(b"%d %s " % (len(known), known))

    def add_file(self, path: Path) -> None:
        """The content of a regular file. Raises OSError, `TooMuchToCompare`."""
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1 - self._bytes)
        self._files, self._bytes = self._files + 1, self._bytes + len(content)
        if self._files > MAX_FILES or self._bytes > MAX_BYTES:
            raise TooMuchToCompare
        self._found.update(b"%d " % len(content) + content)

    def add_folder(
        self, folder: str | Path, name: str = "", *, read: bool = False, above: tuple[tuple[int, int], ...] = ()
    ) -> None:
        """What is in ``folder``, called ``name`` in the digest; nothing of a link to a folder ``above``.

        Raises OSError, `TooMuchToCompare`.
        """
        status = os.stat(folder)  # noqa: PTH116 - of each folder of a workspace: a Path costs more than the call
        place = status.st_dev, status.st_ino
        if place in above:
            return
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        if name and any(entry.name == ".git" for entry in entries):
            self.repositories.append(Path(folder))
            read = True
        for entry in entries:
            if self._counts(entry):
                self._add(entry, f"{name}{entry.name}", read, (*above, place))

    def _counts(self, entry: os.DirEntry[str]) -> bool:
        if entry.name == ".git" or entry.path in self._left_out:
            return False
        return not (_NOT_COMPARED.match(entry.name) and entry.is_dir()) and not entry.name.endswith(_COMPILED)

    def _add(self, entry: os.DirEntry[str], name: str, read: bool, above: tuple[tuple[int, int], ...]) -> None:
        read = read or self._is_read(name)
        if entry.is_symlink():
            self.note(name, os.readlink(entry.path))  # noqa: PTH115 - as above
            if not read or not os.path.exists(entry.path):  # noqa: PTH110 - as above
                return
        mode = entry.stat(follow_symlinks=read).st_mode
        if entry.path not in self._around_left_out:
            self.note(name, mode & self._counted_bits)
        if stat.S_ISDIR(mode):
            self.add_folder(entry.path, f"{name}/", read=read, above=above)
        elif read and stat.S_ISREG(mode):
            self.add_file(Path(entry.path))
