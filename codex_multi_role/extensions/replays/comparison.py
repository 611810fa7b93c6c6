"""Differences between a replay and its recording: reported at once, and kept in the run's folder for programs.

``replay.json`` has ``recording``, its name; ``began_with``, the state of the workspace; ``on_the_way``, the differences
before the end; and, once the run has ended, ``differences``, those of its outcome. The diffs of prompts are in
``replay/``.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codex_multi_role.codex.failures import REPLAY_DIFFERS
from codex_multi_role.host.atomic import make_folder, write_json, write_text
from codex_multi_role.reading.json_files import read_json
from codex_multi_role.run_folder import EventLog, RunFolder
from codex_multi_role.run_folder.events import Warning

FILE, DIFFS = "replay.json", "replay"
LONGEST_NAME = 60
"""Maximum characters of a file name that come from who asked: a unit's key can be longer than any file name."""


def kept_in(run_folder: Path) -> dict[str, Any]:
    """``replay.json``; empty if the run is not a replay or never started, or if the file is damaged."""
    return read_json(run_folder / FILE) or {}


def keep_end(run_folder: Path, differences: Sequence[str]) -> None:
    """Raises `StorageError`."""
    write_json(run_folder / FILE, {**kept_in(run_folder), "differences": differences})


class LiveDifferences:
    """Reports and keeps differences while the run works. Threads may share it."""

    def __init__(self, folder: RunFolder, events: EventLog) -> None:
        self._folder, self._events = folder, events
        self._lock = threading.Lock()  # waits: for one small file

    def begin(self, recording: str, began_with: str) -> None:
        """Raises `StorageError`."""
        write_json(self._folder.path / FILE, {"recording": recording, "began_with": began_with, "on_the_way": []})

    def differs(self, difference: str, diff: str = "") -> None:
        """Raises `StorageError`."""
        where = f"; see {self._keep_diff(difference, diff)}" if diff else ""
        with self._lock:
            kept = kept_in(self._folder.path)
            so_far = [*kept.get("on_the_way", ()), self._folder.redact(difference)]
            write_json(self._folder.path / FILE, {**kept, "on_the_way": so_far})
        self._events.publish(Warning(f"{REPLAY_DIFFERS}{difference}{where}"))

    def prompt_differs(self, difference: str, diff: str, played: bool) -> None:
        """Raises `StorageError`."""
        self.differs(f"{difference}; the most similar recorded turn is played" if played else difference, diff)

    def _keep_diff(self, difference: str, diff: str) -> Path:
        folder = make_folder(self._folder.path / DIFFS)
        who = difference.partition(":")[0]
        words = "_".join(who.replace("/", ".").replace(",", "").split())[:LONGEST_NAME]
        path = folder / f"{words}_{hashlib.sha256(who.encode()).hexdigest()[:8]}.diff"
        write_text(path, self._folder.redact(diff) + "\n")
        return path
