"""The orchestrator in a process of its own, with less patience for what Codex does outside its turns.

    python -m tests.chaos.driver run --goal …

These deadlines are fixed in the package, and long; waited out, each would make a run with a lost message half a minute
longer. What a role declares, ``limits``, is left to its catalog. SIGUSR1 makes it tell where every thread is.
"""

from __future__ import annotations

import faulthandler
import signal
import sys

from codex_multi_role.cli.main import main as codex_multi_role
from codex_multi_role.codex import child, client, running_turn, thread
from codex_multi_role.steps import recovery

START_SECONDS = 5.0
"""For each of the requests that a process is started with: ``initialize``, ``account/read``, ``thread/start``."""
REQUEST_SECONDS = 3.0
INTERRUPT_SECONDS = 2.0
WRITE_SECONDS = 3.0
FIRST_PAUSE_SECONDS = 0.1


def lower_deadlines() -> None:
    client.INITIALIZE_SECONDS = thread.THREAD_SECONDS = START_SECONDS
    client.REQUEST_SECONDS = REQUEST_SECONDS
    running_turn.INTERRUPT_SECONDS = INTERRUPT_SECONDS
    child.WRITE_SECONDS = WRITE_SECONDS
    vars(recovery)["FIRST_PAUSE_SECONDS"] = FIRST_PAUSE_SECONDS


def drive() -> int:
    faulthandler.register(signal.SIGUSR1)
    lower_deadlines()
    sys.argv[0] = "codex-multi-role"
    return codex_multi_role()


if __name__ == "__main__":
    sys.exit(drive())
