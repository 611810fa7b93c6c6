"""Write files so that neither a reader nor a kill ever leaves half of one, and one process at a time."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from codex_multi_role.errors import STORAGE_HINT, SYSTEM_HINTS, StorageError


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert an ``OSError`` about ``path`` to a `StorageError` that names it."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}", SYSTEM_HINTS.get(error.errno or 0, STORAGE_HINT)
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step; its folder must exist. Raises `StorageError`."""
    write_pieces(path, [content])


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Like `write_bytes`, piece by piece. If producing one fails, ``path`` stays as it was and that error is raised."""
    with replacing(path) as file:
        for piece in pieces:
            with storage_errors(path):
                file.write(piece)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that replaces ``path`` in one step at the end of the block; its folder must exist.

    After an error in the block ``path`` stays as it was. Raises `StorageError`.
    """
    with storage_errors(path):
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    file = os.fdopen(descriptor, "wb")
    try:
        yield file
        with storage_errors(path):
            file.close()
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            file.close()
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Like `write_bytes`, UTF-8; what cannot be encoded (lone surrogates) becomes ``?``."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_json(path: Path, value: object) -> None:
    """Like `write_text`, indented JSON with a final newline."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def make_folder(path: Path) -> Path:
    """Create ``path`` and its parents. Raises `StorageError`."""
    with storage_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def wait_for_lock(file: IO[Any], seconds: float, pause_seconds: float) -> None:
    """Lock ``file`` until it is closed. Raises `StorageError` if another process holds the lock for ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                problem = f"{file.name} is locked by another process that does not release it"
                raise StorageError(problem, "Stop that process.") from None
        time.sleep(pause_seconds)
