"""Random flows, each with its model's answers, for runs that are killed.

What a role answers depends only on its prompt, so that it does not matter in which order roles are asked. A race is won
by the role that answers at all, and nobody knows how far the others come.
"""

from __future__ import annotations

from tests.endurance.scenarios.scenario import Scenario
from tests.support.random_flows import GOOD_ITEMS, Weights, flows, numbered
from tests.support.teams import NEVER, WRITER, Record, say

WORKERS = ("ann", "bob", "cy")
RACERS = ("slow", "late")
MOST_ASKS = 60
WORD = "{{ (prompt | string).split('WORD ')[1].split('.')[0] }}"
FILES = [{"path": f"made-{WORD}.md", "content": f"{WORD}\n"}]
ANSWER = say(f"did {WORD}", said="ok", files=FILES)
CLEAN: Record = {"id": "clean", "check": "command", "with": {"argv": ["sh", "-c", "echo {{ outcome }} > ended.md"]}}
RACE: Record = {
    "id": "race",
    "ask": [*RACERS, "cy"],
    "prompt": "WORD race-{{ item }}.",
    "for_each": {"until": f"{GOOD_ITEMS} > 0"},
}
KILLED = Weights(
    kinds={"ask": 4, "check": 1, "call": 1, "panel": 2, "chosen": 2},
    keys={
        **{"for_each": 35, "needs": 33, "at_once": 66, "others_at_once": 66, "until": 33, "copy": 33, "kept": 33},
        **{"cancel": 33, "retry": 20, "skip": 20, "set": 20, "combined": 25},
    },
    roles=WORKERS,
)


def random_flow(number: int) -> Scenario:
    """The flow of this number; it ends well."""
    own, *called = numbered(flows(KILLED), number)
    for flow in (own, *called):
        flow["inputs"]["word"] = ""
        for step in flow["steps"]:
            step.update(_words(step), next=[route for route in step["next"] if route.get("exit") != 1])
            if isinstance(fan_out := step.get("for_each"), dict) and "until" in fan_out:
                fan_out["until"] = f"{GOOD_ITEMS} > 0"
    if number % 2:
        own["steps"].insert(number % len(own["steps"]), RACE)
    may_submit = {"prompt_flags": {"allow_file_suggestions": True}, **WRITER}
    return Scenario(
        name=f"random-{number}",
        roles=dict.fromkeys((*WORKERS, *RACERS), may_submit),
        plays={
            **{role: [ANSWER] * MOST_ASKS for role in WORKERS},
            **{role: [NEVER] * MOST_ASKS for role in RACERS},
        },
        files={"begin.md": ("# Begin\n", 0o644)},
        flow="own",
        flows={flow["name"]: flow | ({"finally": [CLEAN]} if flow is own else {}) for flow in (own, *called)},
        concurrency=3,
        committed=number % 3 == 0,
        racers=RACERS,
        options=("--no-run-tests",),
    )


def _words(step: Record) -> Record:
    """The word of each of its asks; nothing else of the run has it."""
    given = step.get("for_each") or []
    given = given.get("items", []) if isinstance(given, dict) else given
    items = given or (step["ask"] if isinstance(step.get("ask"), list) else [])
    item = next((f".{key}" for key in ("role", "id") if items and isinstance(items[0], dict) and key in items[0]), "")
    word = f"{{{{ inputs.word }}}}{step['id']}" + (f"-{{{{ item{item} }}}}" if items else "")
    if "ask" in step:
        return {"prompt": f"WORD {word}."}
    return {"with": {"word": f"{word}-"}} if "call" in step else {}
