"""Notice changed files, so that what somebody saves in an editor applies without a restart.

The system reports the changes of local file systems. Nobody reports those of network file systems, or those that a
container's host makes in a shared folder: watchdog polls these.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.observers.polling import PollingObserver

SETTLE_SECONDS = 0.1
LONGEST_SETTLING_SECONDS = 2.0
POLL_SECONDS = 1.0
JOIN_SECONDS = 5.0
REPORTING_FILE_SYSTEMS = frozenset(
    ("apfs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay", "ramfs", "tmpfs", "ufs", "xfs", "zfs")
)
"""Those of which every change is made by this system, which reports it."""
CHANGES: list[type[events.FileSystemEvent]] = [
    *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent, events.FileDeletedEvent),
    *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
]
"""Not that somebody read a file, and not that the entries of a folder below changed."""


class WatchedFolders:
    """The entries of ``folders()``, and what their files contain. A folder that does not exist counts as empty.

    The constructor and `have_changed` raise `OSError` if a folder cannot be read.
    """

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        self._folders = folders
        self._reported = threading.Event()
        self._watched: set[Path] = set()
        self._observers: dict[Callable[..., BaseObserver], BaseObserver] = {}
        self._watch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Watch no longer."""
        for observer in self._observers.values():
            observer.stop()
        for observer in self._observers.values():
            observer.join(JOIN_SECONDS)
        self._observers.clear()

    def have_changed(self, pause: Callable[[float], object] = time.sleep) -> bool:
        """Whether one was created, written, replaced or deleted since the last call, or since the beginning.

        An editor's several writes count as one change: if there are any, this returns once they have settled.
        """
        if self._existing() == self._watched and not self._reported.is_set():
            return False
        end = time.monotonic() + LONGEST_SETTLING_SECONDS
        self._reported.set()
        while self._reported.is_set() and time.monotonic() < end:
            self._reported.clear()
            pause(SETTLE_SECONDS)
        self._watch()
        return True

    def _existing(self) -> set[Path]:
        return {folder for folder in self._folders() if folder.is_dir()}

    def _watch(self) -> None:
        """Watch what is there now: folders may have been created or deleted, and links may lead elsewhere."""
        self.close()
        self._watched = self._existing()
        try:
            for folder in self._watched:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    self._schedule(folder, _ChangeHandler(self._reported))
                    for target in _linked_files(folder):
                        self._schedule(target.parent, _ChangeHandler(self._reported, target.name))
        except OSError:
            self.close()
            raise

    def _schedule(self, folder: Path, handler: _ChangeHandler) -> None:
        if _reports_changes(folder):
            with suppress(OSError):  # as many files or folders are watched as the system allows
                self._observer(Observer).schedule(handler, str(folder), event_filter=CHANGES)
                return
        self._observer(PollingObserver).schedule(handler, str(folder), event_filter=CHANGES)

    def _observer(self, kind: Callable[..., BaseObserver]) -> BaseObserver:
        if kind not in self._observers:
            observer = kind(timeout=POLL_SECONDS)
            observer.start()
            self._observers[kind] = observer
        return self._observers[kind]


class _ChangeHandler(events.FileSystemEventHandler):
    """Sets ``reported`` when an entry of a folder changes, or only the one called ``name``."""

    def __init__(self, reported: threading.Event, name: str = "") -> None:
        self._reported = reported
        self._name = name

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        names = {Path(os.fsdecode(path)).name for path in (event.src_path, event.dest_path)}
        if not self._name or self._name in names:
            self._reported.set()


def _linked_files(folder: Path) -> Iterator[Path]:
    """The files outside ``folder`` that its entries are links to."""
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.is_file():
            yield entry.resolve()


def _reports_changes(folder: Path) -> bool:
    """Whether this system makes all changes of the file system of ``folder``. If it is not known, it does not."""
    resolved = folder.resolve()
    mounted = [each for each in psutil.disk_partitions(all=True) if resolved.is_relative_to(each.mountpoint)]
    innermost = max(mounted, key=lambda each: len(each.mountpoint), default=None)
    return innermost is not None and innermost.fstype in REPORTING_FILE_SYSTEMS
