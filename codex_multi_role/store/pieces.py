"""The content of a file in pieces, so that of a file that grows only the end is sent again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from codex_multi_role.store.selection import Signature
from codex_multi_role.store.state_manifest import Piece, SavedFile
from codex_multi_role.store.store import Store

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
        kept = list(_unchanged(file, now, earlier)) if earlier else []
        file.seek(sum(piece.bytes for piece in kept))
        return now, SavedFile(mode=now.mode, pieces=(*kept, *_sent(store, file, now.size)))


def _unchanged(file: BinaryIO, now: Signature, earlier: tuple[Signature, SavedFile]) -> Iterator[Piece]:
    """The earlier pieces that the file still begins with."""
    then, pieces = earlier[0], list(earlier[1].pieces)
    if pieces and pieces[-1].bytes < MIN_PIECE_BYTES and now.size > then.size:
        pieces.pop()
    only_grew = now.inode == then.inode and now.size >= then.size > MAX_VERIFIED_BYTES
    for number, piece in enumerate(pieces, 1):
        if only_grew and number < len(pieces):
            file.seek(piece.bytes, os.SEEK_CUR)
        elif hashlib.sha256(file.read(piece.bytes)).hexdigest() != piece.digest:
            return
        yield piece


def _sent(store: Store, file: BinaryIO, size: int) -> Iterator[Piece]:
    """Send the file from its current position up to ``size``."""
    while content := file.read(min(MAX_PIECE_BYTES, size - file.tell())):
        yield Piece(bytes=len(content), digest=store.put(content))
