"""The console command as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

OWN_VARIABLES = "CODEX_MULTI_ROLE_"
DEADLINE_SECONDS = 120


def console(
    *arguments: str, folder: Path, variables: dict[str, str] | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``codex-multi-role`` with ``arguments`` in ``folder``; ``text`` is its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "codex_multi_role", *arguments],
        cwd=folder,
        env=environment(**(variables or {})),
        input=text,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


@contextmanager
def reading(child: subprocess.Popen[str]) -> Iterator[None]:
    """While what ``child`` says is read: one that says nothing for long is killed, and so is one that is left over."""
    watchdog = threading.Timer(DEADLINE_SECONDS, child.kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        child.kill()


def line(stream: IO[str] | None) -> str:
    """The next line of a child's output; there has to be one."""
    assert stream is not None
    read = stream.readline()
    assert read, "the output has ended"
    return read


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without the command's own, plus ``variables``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES)}
    return {**inherited, **variables}
