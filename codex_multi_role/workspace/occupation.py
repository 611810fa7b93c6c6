"""Noticing that another run works in the same workspace: both take a lock on the folder itself, without a file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def occupied(workspace: Path) -> Iterator[bool]:
    """Take part in ``workspace`` during the block; yields whether others had taken part before.

    The kernel drops the lock with the process. Where the folder cannot be read, or its file system has no such
    locks, nobody is noticed.
    """
    try:
        descriptor = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
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
