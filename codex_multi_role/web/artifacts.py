"""The files of a run that can be looked at: none that is hidden, none outside its folder, whatever links say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from codex_multi_role.run_folder.folder import JOURNAL

MOST_ENTRIES = 1000
CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True)
class ArtifactEntry:
    """A file or a folder; ``path`` is relative to the run's folder. ``size`` in bytes, None of a folder."""

    name: str
    path: str
    size: int | None


def is_shown(path: Path) -> bool:
    """Whether that path, relative to a run's folder, may be looked at, and can be named in an address."""
    return not any(part.startswith((".", JOURNAL)) or _is_no_text(part) for part in path.parts)


def _is_no_text(name: str) -> bool:
    return name.encode("utf-8", "ignore").decode() != name


def real_path(root: Path, wanted: str) -> Path | None:
    """Where ``wanted`` really lies, relative to ``root``; None where it may not be looked at, or is not there."""
    if "\0" in wanted or not is_shown(Path(wanted)) or Path(wanted).is_absolute():
        return None
    real_root = root.resolve()
    try:
        found = (real_root / wanted).resolve(strict=True).relative_to(real_root)
    except (OSError, ValueError, RuntimeError):
        return None
    return found if is_shown(found) else None


def list_folder(root: Path, folder: Path) -> list[ArtifactEntry]:
    """What can be looked at in ``folder``, a `real_path`; folders first. Links are left out, and what comes after
    `MOST_ENTRIES`.
    """
    found = []
    with os.scandir(root / folder) as entries:
        for each in entries:
            path = folder / each.name
            if each.is_symlink() or not is_shown(path):
                continue
            with suppress(FileNotFoundError):  # it has gone meanwhile
                if each.is_dir(follow_symlinks=False):
                    found.append(ArtifactEntry(each.name, path.as_posix(), None))
                elif each.is_file(follow_symlinks=False):
                    found.append(ArtifactEntry(each.name, path.as_posix(), each.stat(follow_symlinks=False).st_size))
    return sorted(found, key=lambda entry: (entry.size is not None, entry.name))[:MOST_ENTRIES]


def open_file(root: Path, path: Path) -> tuple[BinaryIO, int] | None:
    """The regular file at ``path``, a `real_path`, and its size; None where there is none.

    Folders are opened one by one and no link is followed: one that a role puts there meanwhile leads nowhere.
    """
    with ExitStack() as stack:
        try:
            place = os.open(root.resolve(), os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, place)
            for part in path.parts[:-1]:
                place = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
                stack.callback(os.close, place)
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        except OSError:
            return None
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            os.close(descriptor)
            return None
        return os.fdopen(descriptor, "rb"), state.st_size


def chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The first ``size`` bytes; a file that grows meanwhile is as long as it was."""
    while size > 0 and (chunk := file.read(min(CHUNK_BYTES, size))):
        size -= len(chunk)
        yield chunk
