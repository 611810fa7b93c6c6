"""The content of a file in pieces, so that of a file that grows only the end is sent again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from codex_multi_role.extensions.machines.store.saved_files import Signature
from codex_multi_role.extensions.machines.store.state_manifest import Piece, SavedFile
from codex_multi_role.extensions.machines.store.store import Store

MAX_SMALL_BYTES = 4096
"""A file up to this size is in the manifest itself."""
MAX_PIECE_BYTES = 1024 * 1024
MIN_PIECE_BYTES = 64 * 1024
"""A last piece below this size is sent again with what follows it, because many tiny pieces cost more."""
MAX_VERIFIED_BYTES = 16 * 1024 * 1024
"""Of a larger file that has only grown, the pieces except the last one are not read again."""


def capture(store: Store, path: Path, earlier: tuple[Signature, SavedFile] | None) -> tuple[Signature, SavedFile]:
    """Send what the file has beyond its ``earlier`` state. What is appended meanwhile is left for the next time.

    Raises `StorageError`, ``OSError`` if the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        now = Signature.of(os.fstat(descriptor))
        if now.size <= MAX_SMALL_BYTES:
            return now, SavedFile.small(now.mode, file.read(now.size))
        kept = _unchanged(file, now, earlier) if earlier else []
        file.seek(sum(piece.size for piece in kept))
        return now, SavedFile(mode=now.mode, pieces=(*kept, *_sent(store, file, now.size)))


def _unchanged(file: BinaryIO, now: Signature, earlier: tuple[Signature, SavedFile]) -> list[Piece]:
    """The earlier pieces that the file still begins with."""
    then, pieces = earlier[0], list(earlier[1].pieces)
    if pieces and pieces[-1].size < MIN_PIECE_BYTES and now.size > then.size:
        pieces.pop()
    if pieces and now.inode == then.inode and now.size >= then.size > MAX_VERIFIED_BYTES:
        file.seek(sum(piece.size for piece in pieces[:-1]))
        if pieces[-1].is_content(file.read(pieces[-1].size)):
            return pieces
        file.seek(0)
    return list(takewhile(lambda piece: piece.is_content(file.read(piece.size)), pieces))


def _sent(store: Store, file: BinaryIO, size: int) -> Iterator[Piece]:
    """Send the file from its current position up to ``size``."""
    while content := file.read(min(MAX_PIECE_BYTES, size - file.tell())):
        yield Piece(size=len(content), digest=store.put(content))
