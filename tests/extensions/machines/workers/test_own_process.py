"""A process of ours ends with the one that started it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.preloaded import started

WAIT_SECONDS = 60.0
UNTIL_ITS_INPUT_ENDS = """
import time
from codex_multi_role.extensions.machines.workers.own_process import stop_at_end_of
stop_at_end_of(0)
time.sleep(60)
"""


@pytest.mark.real
def test_process_stops_at_the_end_of_its_input() -> None:
    """What comes before the end means nothing."""
    child = started([sys.executable, "-c", UNTIL_ITS_INPUT_ENDS], stdin=subprocess.PIPE)
    try:
        child.communicate("anything", timeout=WAIT_SECONDS / 2)
    finally:
        child.kill()
    assert child.returncode == -signal.SIGTERM
