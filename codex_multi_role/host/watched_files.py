"""Notice changed files, so that what somebody saves in an editor applies without a restart.

The files are looked at again and again: nobody reports the changes of network file systems, or those that a container's
host makes in a shared folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

SETTLE_SECONDS = 0.1
LONGEST_SETTLING_SECONDS = 2.0


class WatchedFolders:
    """The entries of ``folders()``, and what their files contain. A folder that does not exist counts as empty.

    Both methods raise `OSError` if a folder cannot be read.
    """

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        self._folders = folders
        self._seen = self._look()

    def have_changed(self, pause: Callable[[float], object] = time.sleep) -> bool:
        """Whether one was created, written, replaced or deleted since the last call, or since the beginning.

        An editor's several writes count as one change: if there are any, this returns once they have settled.
        """
        if (now := self._look()) == self._seen:
            return False
        end = time.monotonic() + LONGEST_SETTLING_SECONDS
        while now != self._seen and time.monotonic() < end:
            self._seen = now
            pause(SETTLE_SECONDS)
            now = self._look()
        return True

    def _look(self) -> dict[str, tuple[int, ...]]:
        return {path: found for folder in set(self._folders()) for path, found in _entries_in(folder)}


def _entries_in(folder: Path) -> Iterable[tuple[str, tuple[int, ...]]]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        with suppress(FileNotFoundError):  # deleted meanwhile, or a link to nothing
            yield entry.path, () if entry.is_dir() else _identity(entry.stat())


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
