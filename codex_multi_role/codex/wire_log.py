"""Log of every JSON-RPC message of a child, in both directions, with its time: ``<role>/events.jsonl``."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO

Direction = Literal["in", "out"]
BLOCK_BYTES = 64 * 1024


class WireLog:
    """Appends one line per message: ``{"at", "direction", "message"}``; other lines go into ``text``.

    ``redact`` masks secrets before they are stored. If the log cannot be written (a full disk), it stops silently after
    the first error, which ``failure`` keeps: losing the log must not fail the turn.
    """

    def __init__(self, path: Path, redact: Callable[[str], str]) -> None:
        self.redact = redact
        self.failure: OSError | None = None
        self._lock = threading.Lock()  # waits: for one line to a file
        self._path = path
        self._file: TextIO | None = None

    def open(self) -> None:
        """Open the file for appending; an error goes into ``failure``."""
        try:
            _remove_partial_line(self._path)
            self._file = self._path.open("a", encoding="utf-8", errors="replace")
        except OSError as error:
            self.failure = error

    def write(self, direction: Direction, line: bytes) -> None:
        """Store ``line``, a JSON object, as it is."""
        self._append(direction, f'"message":{self._text(line)}')

    def write_text(self, direction: Direction, line: bytes) -> None:
        """Store ``line``, which is not a JSON object, as text."""
        self._append(direction, f'"text":{json.dumps(self._text(line))}')

    def _text(self, line: bytes) -> str:
        return self.redact(line.decode("utf-8", "replace"))

    def _append(self, direction: Direction, kept: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock:
            if self.failure is not None or self._file is None or self._file.closed:
                return
            try:
                self._file.write(f'{{"at":"{at}","direction":"{direction}",{kept}}}\n')
                self._file.flush()
            except OSError as error:
                self.failure = error

    def close(self) -> None:
        with self._lock:
            try:
                if self._file is not None:
                    self._file.close()
            except OSError as error:
                self.failure = error


def _remove_partial_line(path: Path) -> None:
    """Remove what a kill or a full disk left of the last line, which would make the next one unreadable as well."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK_BYTES)
            file.seek(start)
            end = start + file.read(end - start).rfind(b"\n") + 1
            if end > start:
                break
        file.truncate(end)
