"""The AGENTS.md files of a project, found and worded as Codex does.

Codex ignores them if the project is untrusted (measured on 0.163.0). Every workspace is untrusted, because Codex would
otherwise start the servers and hooks that its ``.codex`` names. So their text is put into the developer message, where
Codex's own prompt says it is, and where it survives a compaction.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

FILE_NAMES = ("AGENTS.override.md", "AGENTS.md")
ROOT_MARKERS = (".git",)
MAX_BYTES = 32 * 1024


@dataclass(frozen=True)
class ProjectInstructions:
    """Where to look: Codex's settings of the same names. ``developer``: the settings' own text for the role.

    ``unread_home``: the user's Codex home if the role's process has another one; Codex itself reads only its own.
    """

    workspace: Path
    file_names: tuple[str, ...] = FILE_NAMES
    root_markers: tuple[str, ...] = ROOT_MARKERS
    max_bytes: int = MAX_BYTES
    developer: str = ""
    unread_home: Path | None = None

    @classmethod
    def configured(cls, workspace: Path, settings: Mapping[str, Any], unread_home: Path | None = None) -> Self:
        """Read ``settings``, Codex's effective configuration. Invalid values are left to Codex to reject."""
        max_bytes = settings.get("project_doc_max_bytes", MAX_BYTES)
        markers = settings.get("project_root_markers")
        return cls(
            workspace,
            (*FILE_NAMES, *_texts(settings.get("project_doc_fallback_filenames"))),
            ROOT_MARKERS if markers is None else _texts(markers),
            max_bytes if isinstance(max_bytes, int) else MAX_BYTES,
            str(settings.get("developer_instructions", "")),
            unread_home,
        )

    def developer_message(self, folder: Path) -> str:
        """``developer``, then the AGENTS.md files for a role that works in ``folder``; empty without such a file.

        ``folder`` is the workspace or a copy of it. The outermost file comes first.
        """
        documents = "\n\n".join(self._documents(folder))
        if not documents:
            return ""
        section = f"# AGENTS.md instructions for {folder}\n\n<INSTRUCTIONS>\n{documents}\n</INSTRUCTIONS>\n"
        return "\n\n".join(filter(None, [self.developer, section]))

    def _documents(self, folder: Path) -> Iterator[str]:
        if self.unread_home is not None and (own := self._document(self.unread_home, FILE_NAMES, MAX_BYTES).strip()):
            yield own.decode("utf-8", "replace")
        room = self.max_bytes
        for place in (*self._folders_above(), folder):
            found = self._document(place, self.file_names, room)
            room -= len(found)
            if text := found.decode("utf-8", "replace").strip():
                yield text

    @staticmethod
    def _document(place: Path, names: Iterable[str], most: int) -> bytes:
        contents = (_read(place / name, most) for name in names)
        return next((each for each in contents if each is not None), b"")

    def _folders_above(self) -> list[Path]:
        """The folders from the project's root down to the one above the workspace."""
        chain = [self.workspace, *self.workspace.parents]
        roots = (
            index for index, place in enumerate(chain) if any((place / name).exists() for name in self.root_markers)
        )
        return chain[1 : next(roots, 0) + 1][::-1]


def _read(path: Path, most: int) -> bytes | None:
    """At most ``most`` bytes of a file; None unless it is a readable regular file.

    A role may put anything in its place: a pipe would block, a device would never end.
    """
    if most <= 0:
        return None
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
