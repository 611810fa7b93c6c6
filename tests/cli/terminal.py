"""A command with its stderr on a real terminal: a pseudo-terminal of this process."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .console import DEADLINE_SECONDS, environment


def on_terminal(argv: Sequence[str], folder: Path, **variables: str) -> tuple[str, str, int]:
    """Run ``argv`` on a terminal of 100 columns; what it drew, its stdout, its exit code."""
    ours, theirs = pty.openpty()
    settings = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", **variables}
    child = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=theirs, text=True, cwd=folder, env=environment(**settings)
    )
    os.close(theirs)
    drawn = _read_all(ours)
    output, _ = child.communicate(timeout=DEADLINE_SECONDS)
    return drawn, output, child.returncode


def _read_all(descriptor: int) -> str:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # so Linux says that the other end is closed
            part = b""
        if not part:
            os.close(descriptor)
            return b"".join(parts).decode()
        parts.append(part)
