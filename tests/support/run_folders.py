"""Run folders without a run: files as they are, and what of them is saved."""

from __future__ import annotations

from pathlib import Path

from codex_multi_role.store.selection import select

Contents = dict[str, tuple[int, bytes]]


def contents(folder: Path) -> Contents:
    """The mode and the content of every file below ``folder`` that a store saves, and ``path/`` of every empty folder.

    What private repositories contain does not count: their objects travel in other files.
    """
    selection = select(folder)
    files = {
        path: (signature.mode, (folder / path).read_bytes())
        for path, signature in selection.files.items()
        if not any(path.startswith(f"{each}/") for each in selection.repositories)
    }
    return files | {f"{path}/": (0, b"") for path in selection.empty}
