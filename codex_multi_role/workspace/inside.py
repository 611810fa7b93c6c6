"""Files below a folder, reached without following symlinks, so that one created in between cannot lead outside."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder ``parts`` below ``root``, opened folder by folder; ``make`` creates missing ones.

    Raises OSError.
    """
    folder = os.open(root, _FOLDER)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def replacing(folder: int, name: str) -> Iterator[str]:
    """The name for a new file in the open ``folder``, which replaces ``name`` in one step at the end of the block.

    It depends only on the target, so the resume of a run killed here replaces what was left. Raises OSError; ``name``
    then stays as it was.
    """
    temporary = f".codex-multi-role-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    try:
        yield temporary
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
