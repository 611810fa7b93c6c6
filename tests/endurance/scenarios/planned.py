"""A role that only reads is asked while the tests run before the first change; who writes comes after them.

plan    the planner, which needs a repair turn
write   the writer; a test that failed before still fails, which only the tests before the first change excuse
note    the patcher adds to a log by itself
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import PYTEST, Scenario
from tests.support.teams import WRITER, say

TESTS = """\
import time
from pathlib import Path

from double import double


def test_double():
    time.sleep(0.5)
    Path("left.txt").write_text("by the tests")
    assert double(3) == 6


def test_old():
    assert Path("missing.txt").exists()
"""
MORE_LOG = "*** Begin Patch\n*** Update File: log.md\n@@\n # Log\n+once\n*** End Patch"
CODE = "def double(number):\n    return number * 2\n"

PLANNED = Scenario(
    name="planned",
    roles={"planner": {}, "writer": WRITER, "patcher": {"prompt_flags": {"allow_write": True}}},
    plays={
        "planner": [{"text": "I am not sure.", "repairs": [say("a plan")]}],
        "writer": [say("wrote it", files=[{"path": "double.py", "content": f"{CODE}\n"}])],
        "patcher": [{"steps": [{"patch": MORE_LOG}, say("added to the log")]}],
    },
    files={
        "double.py": (CODE, 0o644),
        "test_double.py": (TESTS, 0o644),
        "log.md": ("# Log\n", 0o644),
    },
    flow="team",
    flows={"team": {"steps": [{"ask": "planner"}, {"ask": "writer"}, {"ask": "patcher"}]}},
    options=("--pytest-cmd", PYTEST),
)
