"""Every kind of child that a run has, in steps that are taken again when a child did not do its part.

make    solver does two things, two at a time, and submits a file for each
run     runner runs a tool command, in Codex's sandbox
note    patcher changes the log by itself: snapshots before and after
look    the check ``command`` finds what the tool command should have left; without it the runner is asked again
try     the tests; red, or not ended in time, they are run again
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import PYTEST, Scenario
from tests.support.teams import Record, say

THINGS = ["axe", "bow"]
VISITS = 3
TEST_SECONDS = 6
CHECK_SECONDS = 4

TOOL = "sleep 0.1; echo ran > ran.txt"
LOOK = "sleep 0.1; cat ran.txt"
NOTE = "*** Begin Patch\n*** Add File: log.md\n+# Log\n*** End Patch"


def made(thing: str) -> Record:
    test = f"from time import sleep\n\n\ndef test_{thing}():\n    sleep(0.05)\n"
    return say(f"made {thing}", files=[{"path": f"test_{thing}.py", "content": test}])


def routed(to: str, when: str) -> list[Record]:
    return [{"when": f"{when} and steps.{to}.visits < {VISITS}", "to": to}]


STEPS: list[Record] = [
    {
        "id": "make",
        "ask": "solver",
        "prompt": "Make {{ item }}.",
        "for_each": {"items": THINGS, "concurrency": len(THINGS)},
    },
    {"id": "run", "ask": "runner"},
    {"id": "note", "ask": "patcher"},
    {
        "id": "look",
        "check": "command",
        "with": {"argv": ["sh", "-c", LOOK], "timeout_seconds": CHECK_SECONDS},
        "next": routed("run", "steps.look.exit_code != 0"),
    },
    {
        "id": "try",
        "check": "tests",
        "next": [*routed("try", "steps.try.exit_code != 0"), {"end": "reached"}],
    },
]
EVERY_CHILD = Scenario(
    name="every-child",
    roles={
        "solver": {
            "prompt_flags": {"allow_file_suggestions": True},
            "behaviors": {"apply_files": True},
        },
        "runner": {"prompt_flags": {"allow_write": True}},
        "patcher": {"prompt_flags": {"allow_write": True}},
    },
    plays={
        "solver": [made(thing) for thing in THINGS],
        "runner": [{"steps": [{"call": "exec_command", "arguments": {"cmd": TOOL}}, say("it ran")]}] * VISITS,
        "patcher": [{"steps": [{"patch": NOTE}, say("noted it")]}] * VISITS,
    },
    files={},
    flow="team",
    flows={"team": {"steps": STEPS}},
    concurrency=len(THINGS),
    options=("--no-run-tests", "--pytest-cmd", PYTEST, "--test-seconds", str(TEST_SECONDS)),
)
