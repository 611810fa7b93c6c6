"""Python programs that are killed just before one of their writes."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.support.preloaded import TOP, started

STRIKE = """
import os, signal, sys
left = int(sys.argv.pop())
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "subprocess.Popen"}

def strike(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if event in CHANGES or writes:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(strike)
"""
SECONDS = 60


def is_killed(program: str, *arguments: object, at: int) -> bool:
    """Run ``program`` until its ``at``-th write, or start of another program; returns whether it came that far."""
    argv = [sys.executable, "-c", STRIKE + program, *map(str, arguments), str(at)]
    child = started(argv, cwd=TOP, stdout=subprocess.PIPE)
    child.communicate(timeout=SECONDS)
    assert child.returncode in (0, -signal.SIGKILL)
    return child.returncode != 0
