"""Manifests: what one saved state of a run consists of.

A manifest has the changes since an earlier one, and names all manifests that it builds on, the first of which is
complete. Their number is bounded, so a save sends little and a restore reads few objects.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.store import Store, in_parallel
from codex_multi_role.host.unpacking import Charges, UnpackBudget
from codex_multi_role.run_folder.folder import RUN_ID

SUFFIX = ".json.zlib"
CHANGED = "The store was changed."
RUN_FOLDER = UnpackBudget(max_bytes=64 * 1024**3, max_entries=1_000_000, max_depth=100, max_seconds=600.0)
"""Of a saved run, and of a file."""
MAX_CHAIN = 64
"""The most manifests that a state may consist of; after that, one with all files is written again."""
NAME = re.compile(rf"runs/(?P<run_id>{RUN_ID.pattern})/(?P<attempt>\d+)/\d+-[0-9a-f]{{64}}{re.escape(SUFFIX)}")

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Tree = Annotated[str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})?$")]


class Piece(BaseModel):
    """A part of a file: its content is an object of the store."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(ge=0)
    digest: Digest

    def is_content(self, content: bytes) -> bool:
        return len(content) == self.size and hashlib.sha256(content).hexdigest() == self.digest


class SavedFile(BaseModel):
    """A file: its mode bits and content, which is in the manifest if it is small, as ``text`` or ``base64``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: int = Field(ge=0, le=0o777)
    text: str | None = None
    base64: str | None = None
    pieces: tuple[Piece, ...] = ()

    @classmethod
    def small(cls, mode: int, content: bytes) -> SavedFile:
        try:
            return cls(mode=mode, text=content.decode())
        except UnicodeDecodeError:
            return cls(mode=mode, base64=base64.b64encode(content).decode())

    @property
    def content(self) -> bytes | None:
        """The content of a small file; None for one in pieces."""
        if self.text is not None:
            return self.text.encode()
        return base64.b64decode(self.base64) if self.base64 is not None else None

    @property
    def size(self) -> int:
        content = self.content
        return sum(piece.size for piece in self.pieces) if content is None else len(content)


class StateManifest(BaseModel):
    """``tree``: the snapshot of the workspace; ``copies``: those of its isolated copies, by key.

    ``after``: the names of the manifests that this one builds on, oldest first. ``files``: by path, those that changed
    since, None for a deleted one. ``empty``: all folders without files. Paths are relative to the run folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    run_id: str
    attempt: int = Field(ge=0)
    tree: Tree = ""
    copies: dict[str, Tree] = {}
    after: tuple[str, ...] = Field(default=(), max_length=MAX_CHAIN)
    files: dict[str, SavedFile | None]
    empty: tuple[str, ...] = ()


def write_manifest(store: Store, number: int, manifest: StateManifest) -> str:
    """Store ``manifest``; returns its name, which no other attempt has. Raises `StorageError`."""
    try:
        content = manifest.model_dump_json(exclude_defaults=True).encode()
    except PydanticSerializationError as error:
        raise StorageError(f"run {manifest.run_id} has a file whose name is not UTF-8", "Rename it.") from error
    return store.put_named(f"runs/{manifest.run_id}/{manifest.attempt}/{number:06d}-", SUFFIX, content)


def read_manifest(store: Store, name: str) -> StateManifest:
    """The manifest with that name. Raises `StorageError` if it is missing, damaged or of another version."""
    if not NAME.fullmatch(name):
        raise StorageError(f"'{name}' is not the name of a saved state", "Restore the database from a copy.")
    with _damaged(store, name):
        manifest = StateManifest.model_validate_json(store.get_named(name, SUFFIX))
    for path in (*manifest.files, *manifest.empty):
        _require_inside(path, name)
    return manifest


def read_states(store: Store, name: str) -> tuple[StateManifest, dict[str, SavedFile]]:
    """The manifest with that name, and all files of its state by path. Raises `StorageError`."""
    latest, charges = read_manifest(store, name), Charges(RUN_FOLDER)
    files: dict[str, SavedFile] = {}
    for manifest in (*in_parallel(lambda each: read_manifest(store, each), latest.after), latest):
        for path, file in manifest.files.items():
            if file is None:
                files.pop(path, None)
            else:
                files[path] = file
    with _damaged(store, name):
        for path in (*files, *latest.empty):
            charges.add(files[path].size if path in files else 0, 1, path.count("/"))
    return latest, files


def read_file(store: Store, name: str) -> SavedFile:
    """The file that `Store.put_named` stored as ``name``. Raises `StorageError`."""
    with _damaged(store, name):
        file = SavedFile.model_validate_json(store.get_named(name, SUFFIX))
        Charges(RUN_FOLDER).add(file.size)
        return file


def read_pieces(store: Store, file: SavedFile) -> Iterator[bytes]:
    """The content of ``file``, never more than its size. Raises `StorageError`."""
    if file.content is not None:
        yield file.content
    for piece in file.pieces:
        yield read_piece(store, piece)


def read_piece(store: Store, piece: Piece) -> bytes:
    """Raises `StorageError`, also if the content is not as long as was counted."""
    content = store.get(piece.digest)
    if len(content) != piece.size:
        raise StorageError(f"{piece.digest} in the store {store.address} is not {piece.size} bytes long", CHANGED)
    return content


@contextmanager
def _damaged(store: Store, name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        hint = "Use the version of codex-multi-role that wrote it." if isinstance(error, ValidationError) else CHANGED
        raise StorageError(f"{name} in the store {store.address} cannot be read: {reason}", hint) from error


def _require_inside(path: str, manifest: str) -> None:
    """Raise `StorageError` for a path that would lead out of the run folder."""
    parts = PurePosixPath(path).parts
    plain = "/".join(parts) == path and bool(parts) and "\0" not in path
    if not plain or path.startswith("/") or ".." in parts:
        raise StorageError(f"{manifest} contains a path outside of the run folder: {path!r}", CHANGED)
