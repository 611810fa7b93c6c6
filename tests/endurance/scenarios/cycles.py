"""Four roles, two cycles, and every way there is to change the workspace.

cycle 1   planner only reads, and needs a repair turn while the tests run before the first change; writer submits a
          wrong program and its tests, patcher starts a log by itself
cycle 2   writer fixes the program, patcher adds to its log by itself, judge says DONE: a test that failed before still
          fails, which only the tests before the first change excuse
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import PYTEST, Scenario
from tests.support.teams import say

TESTS = "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
WRONG = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"
OLD_TESTS = """\
import time
from pathlib import Path


def test_old():
    time.sleep(0.5)
    Path("left.txt").write_text("by the tests")
    assert Path("missing.txt").exists()
"""
TOOL = "#!/bin/sh\necho new\n"
NEW_LOG = "*** Begin Patch\n*** Add File: doc/log.md\n+# Log\n+first cycle\n*** End Patch"
# Applied twice it leaves two lines: a turn that is taken again must begin where it began the first time.
MORE_LOG = "*** Begin Patch\n*** Update File: doc/log.md\n@@\n # Log\n+second cycle\n*** End Patch"

FIRST_FILES = [
    {"path": "double.py", "content": WRONG},
    {"path": "tests/test_double.py", "content": TESTS},
    {"path": "tool.sh", "content": TOOL},
]

CYCLES = Scenario(
    name="cycles",
    roles={
        "planner": {},
        "writer": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
        "patcher": {"prompt_flags": {"allow_write": True}},
        "judge": {"behaviors": {"can_finish": True}},
    },
    plays={
        "planner": [{"text": "I am not sure.", "repairs": [say("a plan")]}, say("the same plan")],
        "writer": [
            say("wrote it", files=FIRST_FILES, analysis_md="# Why\n\nBecause."),
            say("fixed it", files=[{"path": "double.py", "content": RIGHT}]),
        ],
        "patcher": [
            {"steps": [{"patch": NEW_LOG}, say("began the log")]},
            {"steps": [{"patch": MORE_LOG}, say("added to the log")]},
        ],
        "judge": [
            say("the tests are red", status="CONTINUE"),
            say("the tests are green", status="DONE"),
        ],
    },
    files={"tool.sh": ("#!/bin/sh\necho old\n", 0o750), "test_old.py": (OLD_TESTS, 0o644)},
    cycles=2,
    options=("--pytest-cmd", PYTEST),
)
