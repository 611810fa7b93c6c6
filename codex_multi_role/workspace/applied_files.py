"""Write the files of a handoff, atomically and only inside the workspace; record each, written or not."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from codex_multi_role.host.settings_files import would_hold_settings
from codex_multi_role.workspace.paths import PathRefused, Workspace
from codex_multi_role.workspace.writing import open_folder, replacing, write_new

MAX_FILES = 1_000
MAX_FILE_BYTES = 5 * 1024 * 1024
_MAX_RECORDED_PATH = 1_000
_one_writer = Lock()  # waits: for one file


@dataclass(frozen=True)
class AppliedFile:
    """The result of one entry of ``files[]``: written, with its size and digest, or skipped, with the reason."""

    status: Literal["WROTE", "SKIPPED"]
    path: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    reason: str | None = None

    def as_json(self) -> dict[str, object]:
        """An entry of ``applied_files.json``: ``{path, status, bytes, sha256}`` or ``{path?, status, reason}``."""
        named = {"path": self.path, "status": self.status, "bytes": self.bytes}
        everything = {**named, "sha256": self.sha256, "reason": self.reason}
        return {name: value for name, value in everything.items() if value is not None}


def apply_files(workspace: Workspace, files: object, protected: Collection[str] = ()) -> list[AppliedFile]:
    """Write ``files``, a handoff's ``[{path, content}]``, into the workspace; one record per entry, in order.

    Never raises for a model's mistake or a disk error: the record has the reason. A path listed twice is written twice,
    and the last content stays. Paths in ``protected``, spelled alike, are skipped.
    """
    if not isinstance(files, list):
        return [_skipped("files is not a list")]
    return [_apply(workspace, entry, number, protected) for number, entry in enumerate(files)]


def _apply(workspace: Workspace, entry: object, number: int, protected: Collection[str]) -> AppliedFile:
    if not isinstance(entry, dict):
        return _skipped("invalid entry")
    path, content = entry.get("path"), entry.get("content")
    if not isinstance(path, str):
        return _skipped("invalid path")
    if not isinstance(content, str):
        return _skipped("invalid content", path)
    if path in protected:
        return _skipped("protected", path)
    data = content.encode("utf-8", "replace")
    if number >= MAX_FILES or len(data) > MAX_FILE_BYTES:
        return _skipped("too large", path)
    try:
        with _one_writer:
            write_inside(workspace, path, data)
    except PathRefused as refused:
        return _skipped(refused.reason, path)
    except OSError as error:
        return _skipped(f"write failed: {error.strerror or error}", path)
    return AppliedFile("WROTE", path, len(data), hashlib.sha256(data).hexdigest())


def _skipped(reason: str, path: str | None = None) -> AppliedFile:
    return AppliedFile("SKIPPED", path and path[:_MAX_RECORDED_PATH], reason=reason)


def write_inside(workspace: Workspace, relative: str, data: bytes) -> None:
    """Replace the file ``relative`` by ``data`` in one step, keeping its permissions; creates its parent folders.

    Raises PathRefused, also for content that would steer the next run; OSError.
    """
    *parents, name = workspace.resolve_writable(relative).relative_to(workspace.root).parts
    if would_hold_settings(name, data):
        raise PathRefused("unsafe path")
    with open_folder(workspace.root, parents, make=True) as folder, replacing(folder, name) as temporary:
        write_new(folder, temporary, name, io.BytesIO(data))
