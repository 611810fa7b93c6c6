"""Writing files so that a reader, or a kill, never meets half of one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from codex_multi_role.errors import StorageError


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` about ``path`` into a `StorageError` that names it."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}",
            "Free some space or fix the permissions, then try again; `codex-multi-role resume` goes on with a run.",
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step; its folder must exist. Raises `StorageError`."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file to write piece by piece, which replaces ``path`` in one step; not when writing it fails.

    Its folder must exist. Raises `StorageError`.
    """
    with storage_errors(path):
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`, UTF-8; what cannot be encoded (lone surrogates) becomes ``?``."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_json(path: Path, value: object) -> None:
    """As `write_text`, indented JSON with a final newline."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def make_folder(path: Path) -> Path:
    """Create ``path`` and its parents. Raises `StorageError`."""
    with storage_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path
