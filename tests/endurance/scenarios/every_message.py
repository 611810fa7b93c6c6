"""Every kind of message there is: handoffs, a repair, files, a patch, a command that asks, and two turns at a time.

plan     planner names three things
solve    solver does each of them, two at a time, and submits a file for it
try      runner runs a command, which Codex asks us about
note     patcher changes the log by itself
judge    judge's first answer needs a repair; CONTINUE leads back to ``note``, DONE ends the run
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import Scenario
from tests.support.teams import Record, say

THINGS = ["axe", "bow", "cup"]
SOLVE: Record = {
    "id": "solve",
    "ask": "solver",
    "prompt": "Make {{ item }}.",
    "for_each": {"items": "{{ steps.plan.things }}", "max_items": len(THINGS), "concurrency": 2},
}
JUDGE: Record = {
    "id": "judge",
    "ask": "judge",
    "next": [{"when": "steps.judge.visits >= 2", "end": "gave_up", "exit": 1}, {"to": "note"}],
}
STEPS = [
    {"id": "plan", "ask": "planner"},
    SOLVE,
    {"id": "try", "ask": "runner"},
    {"id": "note", "ask": "patcher"},
    JUDGE,
]
NEW_LOG = "*** Begin Patch\n*** Add File: doc/log.md\n+# Log\n+first\n*** End Patch"
# Done twice, this leaves two lines, and so does the command.
MORE_LOG = "*** Begin Patch\n*** Update File: doc/log.md\n@@\n # Log\n+second\n*** End Patch"
COMMAND: Record = {"call": "exec_command", "arguments": {"cmd": "echo ran >> ran.txt"}}


def asked(answer: Record, *work: Record) -> Record:
    """An entry: ``work``, then ``answer``; and the answer again as often as it is asked for, its message being lost."""
    first: Record = {"steps": [*work, answer]} if work else answer
    return {**first, "repairs": [answer, answer]}


def made(thing: str) -> Record:
    return asked(say(f"made {thing}", files=[{"path": f"things/{thing}.txt", "content": f"{thing}\n"}]))


EVERY_MESSAGE = Scenario(
    name="every-message",
    roles={
        "planner": {},
        "solver": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
        "runner": {
            "sandbox": "workspace-write",
            "approval_policy": "untrusted",
            "auto_approve": {"commands": True},
        },
        "patcher": {"prompt_flags": {"allow_write": True}},
        "judge": {"behaviors": {"can_finish": True}},
    },
    plays={
        "planner": [asked(say("three things", things=THINGS, analysis_md="# Why\n\n" + "Because. " * 10_000))],
        "solver": [made(thing) for thing in THINGS],
        "runner": [asked(say("it ran"), COMMAND)],
        "patcher": [asked(say("began the log"), {"patch": NEW_LOG}), asked(say("added to it"), {"patch": MORE_LOG})],
        "judge": [
            {"text": "I am not sure.", "repairs": [say("go on", status="CONTINUE")] * 2},
            asked(say("well done", status="DONE")),
        ],
    },
    files={},
    flow="team",
    flows={"team": {"steps": STEPS}},
    concurrency=2,
    options=("--no-run-tests",),
)
