"""What has to happen after a test, however it ends: a shell of its own does it, also if this process is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLEANING_SECONDS = 60.0


@contextmanager
def afterwards(script: str, *arguments: str) -> Iterator[None]:
    """Run the shell script with ``arguments`` as ``$1``, ``$2`` … after the block, or after the end of this process.

    The shell reads a pipe that only this process holds open, so that ``kill -9`` and a normal end take the same way.
    """
    quiet = subprocess.DEVNULL
    shell = subprocess.Popen(
        ["sh", "-ec", f"cat\n{script}", "sh", *arguments],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        cwd="/",
        start_new_session=True,  # not reached by Ctrl-C
    )
    try:
        yield
    finally:
        shell.communicate(timeout=CLEANING_SECONDS)
    assert shell.returncode == 0, f"cleaning up failed: {script}"
