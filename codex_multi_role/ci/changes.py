"""Which files a run changed, told from its events and from the patches of its turns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from codex_multi_role.presentation.progress import Progress
from codex_multi_role.presentation.recorded import read_turns
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.turns import INHERITED

HEADER = re.compile(r'diff --git (?:a/(?P<name>.+) b/(?P=name)|"a/(?P<quoted>.+)" "b/(?P=quoted)")')


def changed_files(folder: RunFolder, progress: Progress) -> list[str]:
    """Paths in the workspace, in the order they were first changed; not those of turns that a fork inherited.

    A role that writes the workspace itself hands in no files: what it did is in its turn's patch alone.
    """
    names = dict.fromkeys(progress.written)
    for turn in read_turns(folder):
        if not turn.get(INHERITED):
            names.update(dict.fromkeys(_patched(Path(turn["folder"]) / "changes.patch")))
    return list(names)


def _patched(patch: Path) -> Iterator[str]:
    try:
        with patch.open(encoding="utf-8", errors="replace") as lines:
            headers = [HEADER.fullmatch(line.rstrip("\n")) for line in lines if line.startswith("diff --git ")]
    except OSError:  # a turn that changed nothing has none
        return
    yield from (header["name"] or header["quoted"] for header in headers if header)
