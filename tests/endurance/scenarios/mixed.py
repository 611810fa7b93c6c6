"""Everything that ends work early, repeats it or cleans up, in one flow.

panel    two roles at once, each in a copy that is merged back
release  a person's typed answer
deliver  a call that is tried twice, in a copy: below it another call, with items at once, and a judge who refuses first
first    one item at a time, until the second one suffices
race     two roles at once, of whom one answers; `take` merges its copy
late     a role that does not answer within the limit of its step, which is skipped
risky    a call that is skipped when it fails: below it, the failure of an item cancels the other one
log      a command that adds a line to a file; two more at the end

What is added twice, or is missing, shows in the workspace.
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import Scenario
from tests.support.teams import NEVER, WRITER, Record, say

MAX_ASKS = 12
WORD = "{{ (prompt | string).split('WORD ')[1].split('.')[0] }}"
ANSWER = say(f"did {WORD}", word=WORD, files=[{"path": f"made/{WORD}.md", "content": f"{WORD}\n"}])


def adds(step_id: str, line: str) -> Record:
    return {"id": step_id, "check": "command", "with": {"argv": ["sh", "-c", f"echo {line} >> log.md"]}}


MAIN: Record = {
    "steps": [
        {"id": "panel", "ask": ["ann", "bob"], "prompt": "WORD panel-{{ item }}.", "isolate": "worktree"},
        {
            "id": "release",
            "review": {
                "question": "Release it?",
                "options": ["ship", "hold"],
                "after": {"seconds": 3600, "answer": "ship"},
                "fields": {"version": {"type": "string", "default": "1.0"}},
            },
        },
        {
            "id": "deliver",
            "call": "deliver",
            "with": {"word": "{{ steps.release.option }}"},
            "isolate": "worktree",
            "retry": {"attempts": 2, "backoff_seconds": 0},
            "limits": {"seconds": 60},
        },
        {
            "id": "first",
            "ask": "cy",
            "prompt": "WORD first-{{ item }}.",
            "for_each": {"items": ["axe", "bow", "cup"], "until": "results[-1].word.endswith('bow')"},
        },
        {
            "id": "race",
            "ask": ["slow", "bob"],
            "prompt": "WORD race-{{ item }}.",
            "isolate": {"merge": "none"},
            "for_each": {"until": "results | selectattr('status', 'equalto', 'done') | list | length > 0"},
        },
        {"id": "take", "check": "merge", "with": {"copies": ["{{ steps.race.by_role.bob.copy }}"]}},
        {"id": "late", "ask": "late", "limits": {"seconds": 1.5}, "allow": ["failed"]},
        {"id": "risky", "call": "risky", "allow": ["bad", "failed"]},
        adds("log", "logged"),
        {"id": "last", "ask": "ann", "prompt": "WORD last."},
    ],
    "finally": [adds("clean", "{{ outcome }}"), adds("sweep", "{{ exit_code }}")],
}
DELIVER: Record = {
    "inputs": {"word": {"required": True}},
    "steps": [
        {"id": "parts", "call": "parts", "with": {"word": "{{ inputs.word }}"}},
        {
            "id": "judge",
            "ask": "judge",
            "prompt": "WORD judge.",
            "next": [{"when": "not steps.judge.is_good", "end": "refused", "exit": 1}, {"end": "delivered"}],
        },
    ],
}
PARTS: Record = {
    "inputs": {"word": {"required": True}},
    "steps": [
        {
            "id": "part",
            "ask": "cy",
            "prompt": "WORD {{ inputs.word }}-{{ item }}.",
            "for_each": {"items": ["dam", "elm"], "concurrency": 2, "on_failure": "cancel"},
        },
        adds("packed", "packed"),
    ],
}
RISKY: Record = {
    "steps": [
        {
            "id": "try",
            "ask": "{{ item }}",
            "roles": ["fails", "idle"],
            "for_each": {"items": ["fails", "idle"], "concurrency": 2, "on_failure": "cancel"},
        },
        adds("never", "never"),
    ],
}

MIXED = Scenario(
    name="mixed",
    roles={
        **{role: {"prompt_flags": {"allow_file_suggestions": True}, **WRITER} for role in ("ann", "bob", "cy")},
        **{role: {} for role in ("judge", "fails", "slow", "late", "idle")},
    },
    plays={
        **{role: [ANSWER] * MAX_ASKS for role in ("ann", "bob", "cy")},
        "judge": [say("not yet", is_good=False), say("now it is", is_good=True)],
        "fails": [{"fault": {"status": 400}}] * MAX_ASKS,
        **{role: [NEVER] * MAX_ASKS for role in ("slow", "late", "idle")},
    },
    files={"log.md": ("# Log\n", 0o644)},
    flow="main",
    flows={"main": MAIN, "deliver": DELIVER, "parts": PARTS, "risky": RISKY},
    concurrency=3,
    committed=True,
    racers=("slow", "late", "idle"),
    options=("--no-run-tests", "--yes"),
)
