"""The files in a run's folder: which a page may show, and how one is sent while a role may still change it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from codex_multi_role.run_folder.folder import JOURNAL

MOST_ENTRIES = 1000
CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True)
class ArtifactEntry:
    """A file or a folder; ``path`` is relative to the run's folder. ``size`` in bytes, None for a folder."""

    name: str
    path: str
    size: int | None


def is_shown(path: Path) -> bool:
    """Whether ``path``, relative to a run's folder, may be viewed and can be part of a URL."""
    names = path.parts
    return not any(each.startswith((".", JOURNAL)) or each.encode(errors="ignore").decode() != each for each in names)


def real_path(root: Path, wanted: str) -> Path | None:
    """Resolve ``wanted`` relative to ``root``; None if it is not found or may not be viewed."""
    if "\0" in wanted or not is_shown(Path(wanted)) or Path(wanted).is_absolute():
        return None
    real_root = root.resolve()
    try:
        found = (real_root / wanted).resolve(strict=True).relative_to(real_root)
    except (OSError, ValueError, RuntimeError):
        return None
    return found if is_shown(found) else None


def list_folder(root: Path, folder: Path) -> list[ArtifactEntry]:
    """List what can be viewed in ``folder``, a `real_path`: folders first, no links, at most `MOST_ENTRIES`."""
    found = []
    with os.scandir(root / folder) as entries:
        for each in entries:
            path = folder / each.name
            if each.is_symlink() or not is_shown(path):
                continue
            with suppress(FileNotFoundError):  # it was removed meanwhile
                if each.is_dir(follow_symlinks=False):
                    found.append(ArtifactEntry(each.name, path.as_posix(), None))
                elif each.is_file(follow_symlinks=False):
                    found.append(ArtifactEntry(each.name, path.as_posix(), each.stat(follow_symlinks=False).st_size))
    return sorted(found, key=lambda entry: (entry.size is not None, entry.name))[:MOST_ENTRIES]


def sent_file(root: Path, path: Path, media_type: str, headers: dict[str, str]) -> Response | None:
    """The regular file at ``path``, a `real_path`; None if there is no such file."""
    if (opened := open_file(root, path)) is None:
        return None
    file, size = opened
    headers["Content-Length"] = str(size)
    return _FileResponse(file, chunks(file, size), media_type=media_type, headers=headers)


def open_file(root: Path, path: Path) -> tuple[BinaryIO, int] | None:
    """Open the regular file at ``path``, a `real_path`; returns it with its size, or None if there is no such file.

    Opens folder by folder and follows no link, so that one created meanwhile by a role leads nowhere.
    """
    with ExitStack() as stack:
        try:
            parent = os.open(root.resolve(), os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, parent)
            for part in path.parts[:-1]:
                parent = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
                stack.callback(os.close, parent)
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        except OSError:
            return None
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb"), state.st_size


def chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes, even if the file grows meanwhile."""
    while size > 0 and (chunk := file.read(min(CHUNK_BYTES, size))):
        size -= len(chunk)
        yield chunk


class _FileResponse(StreamingResponse):
    """Sends ``content``, the chunks of ``file``; closes ``file`` in the end, even if not all were sent."""

    def __init__(self, file: BinaryIO, content: Iterator[bytes], *, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)
