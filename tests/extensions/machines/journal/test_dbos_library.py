from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.real

WATCHED = """
import sys
programs = []
sys.addaudithook(lambda event, given: programs.append(given[0]) if event == "subprocess.Popen" else None)
import codex_multi_role.extensions.machines.journal.shared_journal
print(programs)
"""


def test_importing_dbos_runs_no_program() -> None:
    """One that froze would hold up the run for ever: nobody gives it a deadline."""
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
