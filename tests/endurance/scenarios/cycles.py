"""Three roles, two cycles, and every way there is to change the workspace.

cycle 1   writer submits a wrong program and its tests, patcher starts a log by itself, judge needs a repair turn
cycle 2   writer fixes the program, patcher adds to its log by itself, judge says DONE
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import PYTEST, Scenario
from tests.support.teams import say

TESTS = "from double import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
WRONG = "def double(number):\n    return number + 2\n"
RIGHT = "def double(number):\n    return number * 2\n"
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
        "writer": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
        "patcher": {"prompt_flags": {"allow_write": True}},
        "judge": {"behaviors": {"can_finish": True}},
    },
    plays={
        "writer": [
            say("wrote it", files=FIRST_FILES, analysis_md="# Why\n\nBecause."),
            say("fixed it", files=[{"path": "double.py", "content": RIGHT}]),
        ],
        "patcher": [
            {"steps": [{"patch": NEW_LOG}, say("began the log")]},
            {"steps": [{"patch": MORE_LOG}, say("added to the log")]},
        ],
        "judge": [
            {"text": "I am not sure.", "repairs": [say("the tests are red", status="CONTINUE")]},
            say("the tests are green", status="DONE"),
        ],
    },
    files={"tool.sh": ("#!/bin/sh\necho old\n", 0o750)},
    cycles=2,
    options=("--pytest-cmd", PYTEST),
)
