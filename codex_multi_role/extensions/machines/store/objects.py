"""Objects by name in a local folder, written so that no reader sees half of one and no power failure loses one."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Protocol

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Run folders are private, so their copies are."""


class Objects(Protocol):
    """Named byte strings below one address. Every method may raise any exception of the library it uses.

    A missing object is a ``FileNotFoundError``.
    """

    def read(self, name: str) -> bytes: ...

    def exists(self, name: str) -> bool: ...

    def write(self, name: str, content: bytes) -> None:
        """Replace the object in one step."""

    def create(self, name: str, content: bytes) -> None:
        """Write the object unless it exists. Of several callers at once, one succeeds."""


class LocalObjects:
    """Objects as files below ``folder``, which is created on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def exists(self, name: str) -> bool:
        return (self._folder / name).exists()

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        temporary = self._written_beside(path, content)
        try:
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)

    def create(self, name: str, content: bytes) -> None:
        path = self._folder / name
        temporary = self._written_beside(path, content)
        try:
            with suppress(FileExistsError):
                os.link(temporary, path)  # unlike a rename, this never replaces a file
        finally:
            temporary.unlink(missing_ok=True)
        _flush_folder(path.parent)

    def _written_beside(self, path: Path, content: bytes) -> Path:
        """A new file with ``content``, on disk, beside ``path``."""
        _make_private(path.parent)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary


def _make_private(folder: Path) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(PRIVATE_FOLDER)
        _flush_folder(each.parent)


def _flush_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable, as far as its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
