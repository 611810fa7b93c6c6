"""Detects another run in the same workspace, or in copies: both lock the folder itself, without a file.

Such a lock is seen by every process of the machine, whatever part of the file system it can see.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def occupied(folder: Path) -> Iterator[bool]:
    """Hold a shared lock on ``folder`` during the block; yields whether others held one before.

    The kernel releases the lock with the process. If the folder cannot be read, or its file system has no such locks,
    no other run is detected.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        yield _is_shared(descriptor)
    finally:
        os.close(descriptor)


def _is_shared(descriptor: int) -> bool:
    shared = False
    with suppress(OSError):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shared = True
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return shared
