"""Roles that work at the same time, in copies of the workspace and in called flows.

write    three writers, two at a time, each in a copy that is merged back: a patches and needs a repair turn, in which
         it patches again and submits a file; b patches; c submits a file that conflicts with b's
settle   the flow routes on the conflict: the writer submits the settled file
study    a flow is called for three items, two at a time; in each drafter submits a file and critic judges it
report   fails, and is tried again
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import Scenario
from tests.support.teams import Record, say

# Applied twice they leave two lines: a turn that is taken again must begin where it began the first time.
PATCH_BY_A = (
    "*** Begin Patch\n*** Update File: log.md\n@@\n # Log\n+by a\n*** Add File: notes/a.md\n+a noted it\n*** End Patch"
)
AGAIN_BY_A = "*** Begin Patch\n*** Update File: log.md\n@@\n # Log\n+by a again\n*** End Patch"
PATCH_BY_B = "*** Begin Patch\n*** Update File: shared.md\n@@\n # Shared\n+by b\n*** End Patch"
SCRIPT = [{"path": "tool.sh", "content": "#!/bin/sh\necho new\n"}]
WORD = "{{ (prompt | string).split('WORD ')[1].split('.')[0] }}"
WRITE: Record = {
    "id": "write",
    "ask": "writer",
    "isolate": "worktree",
    "for_each": {"items": ["a", "b", "c"], "allow": ["failed"], "concurrency": 2},
    "next": [
        {"when": "steps.write.results | selectattr('merge.status', 'equalto', 'conflicts') | list", "to": "settle"},
        {"end": "no_conflict", "exit": 1},
    ],
}
STUDY: Record = {
    "id": "study",
    "call": "study",
    "with": {"word": "{{ item }}"},
    "for_each": {"items": ["x", "y", "z"], "concurrency": 2},
    "next": [
        {
            "when": "steps.study.results | map(attribute='steps.critic.word') | list == ['x', 'y', 'z']",
            "to": "report",
        },
        {"end": "mixed_up", "exit": 1},
    ],
}
REPORT: Record = {
    "id": "report",
    "ask": "writer",
    "retry": {"attempts": 2, "backoff_seconds": 0},
    "next": [{"end": "reported"}],
}
STUDY_FLOW: Record = {
    "inputs": {"word": {"required": True}},
    "steps": [
        {"ask": "drafter", "prompt": "Draft WORD {{ inputs.word }}."},
        {"ask": "critic", "prompt": "Judge WORD {{ inputs.word }}."},
    ],
}
DRAFT = [{"path": f"drafts/{WORD}.md", "content": f"A draft on {WORD}.\n"}]

FAN_OUT = Scenario(
    name="fan-out",
    roles={
        "writer": {
            "prompt_flags": {"allow_write": True, "allow_file_suggestions": True},
            "behaviors": {"apply_files": True},
        },
        "drafter": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
        "critic": {},
    },
    plays={
        "writer": [
            {
                "steps": [{"patch": PATCH_BY_A}, {"text": "Was that all?"}],
                "repairs": [{"steps": [{"patch": AGAIN_BY_A}, say("it was not", files=SCRIPT)]}],
            },
            {"steps": [{"patch": PATCH_BY_B}, say("patched it")]},
            say("handed it in", files=[{"path": "shared.md", "content": "# Shared\nby c\n"}]),
            say("settled it", files=[{"path": "shared.md", "content": "# Shared\nby b and c\n"}]),
            {"fault": {"status": 400}},
            say("reported it"),
        ],
        "drafter": [say(f"drafted {WORD}", files=DRAFT)] * 3,
        "critic": [say(f"judged {WORD}", word=WORD)] * 3,
    },
    files={
        "shared.md": ("# Shared\n", 0o644),
        "log.md": ("# Log\n", 0o644),
        "tool.sh": ("#!/bin/sh\necho old\n", 0o750),
    },
    flow="team",
    flows={"team": {"steps": [WRITE, {"id": "settle", "ask": "writer"}, STUDY, REPORT]}, "study": STUDY_FLOW},
    concurrency=2,
    committed=True,
    options=("--no-run-tests",),
)
