"""Flows that chance puts together of what asks several roles, ends early and cleans up, each with its model's answers.

What a role answers depends only on its prompt, so that it does not matter in which order roles are asked. A race is won
by the role that answers at all, and nobody knows how far the others come.
"""

from __future__ import annotations

from random import Random

from tests.endurance.scenarios.scenario import Scenario
from tests.support.teams import NEVER, WRITER, Record, say

WORKERS = ("ann", "bob", "cy")
RACERS = ("slow", "late")
WORDS = ("axe", "bow", "cup", "dam")
MOST_ASKS = 30
WORD = "{{ (prompt | string).split('WORD ')[1].split('.')[0] }}"
ANSWER = say(f"did {WORD}", word=WORD, files=[{"path": f"made-{WORD}.md", "content": f"{WORD}\n"}])
CLEAN: Record = {"id": "clean", "check": "command", "with": {"argv": ["sh", "-c", "echo {{ outcome }} > ended.md"]}}


def random_flow(seed: int) -> Scenario:
    """The flow of this number."""
    chance = Random(seed)
    kinds = [_panel, _by_data, _in_order, _race, _called]
    steps = [kind(chance, number) for number, kind in enumerate(chance.sample(kinds, 3))]
    last = {"id": "last", "ask": "ann", "prompt": "WORD last."}
    plan = say("planned", tasks=_tasks(chance))
    return Scenario(
        name=f"random-{seed}",
        roles={"planner": {}, **{role: _may_submit() for role in (*WORKERS, *RACERS)}},
        plays={
            "planner": [plan] * MOST_ASKS,
            **{role: [ANSWER] * MOST_ASKS for role in WORKERS},
            **{role: [NEVER] * MOST_ASKS for role in RACERS},
        },
        files={"begin.md": ("# Begin\n", 0o644)},
        flow="main",
        flows={
            "main": {"steps": [{"ask": "planner"}, *steps, last], "finally": [CLEAN]},
            "inner": {"inputs": {"word": {"required": True}}, "steps": [_in_order(chance, 9, "{{ inputs.word }}-")]},
        },
        concurrency=3,
        committed=chance.random() < 0.5,
        racers=RACERS,
        options=("--no-run-tests",),
    )


def _may_submit() -> Record:
    return {"prompt_flags": {"allow_file_suggestions": True}, **WRITER}


def _tasks(chance: Random) -> list[Record]:
    words = WORDS[: chance.randint(2, len(WORDS))]
    return [
        {"id": word, "role": chance.choice(WORKERS), "needs": [words[0]] if index and chance.random() < 0.5 else []}
        for index, word in enumerate(words)
    ]


def _panel(chance: Random, number: int) -> Record:
    asked = chance.sample(WORKERS, chance.randint(2, 3))
    step: Record = {"id": f"panel{number}", "ask": asked, "prompt": f"WORD panel{number}-{{{{ item }}}}."}
    return step | chance.choice([{}, {"concurrency": 1}, {"isolate": "worktree"}, {"on_item_error": "cancel"}])


def _by_data(chance: Random, number: int) -> Record:
    step: Record = {
        "id": f"work{number}",
        "ask": "{{ item.role }}",
        "roles": [*WORKERS],
        "prompt": f"WORD work{number}-{{{{ item.id }}}}.",
        "for_each": "{{ steps.planner.tasks }}",
        "max_items": len(WORDS),
        "concurrency": chance.randint(1, 3),
    }
    return step | chance.choice([{}, {"isolate": "worktree"}, {"needs": "{{ item.needs }}"}])


def _in_order(chance: Random, number: int, before: str = "") -> Record:
    """One at a time, up to an item that all know before."""
    words = WORDS[: chance.randint(2, len(WORDS))]
    last = chance.choice(words)
    step: Record = {
        "id": f"first{number}",
        "ask": chance.choice(WORKERS),
        "prompt": f"WORD first{number}-{before}{{{{ item }}}}.",
        "for_each": [*words],
        "until": f"results[-1].word.endswith('{last}')",
    }
    return step | chance.choice([{}, {"isolate": "worktree", "merge": "none"}])


def _race(chance: Random, number: int) -> Record:
    """All at once, of whom one answers."""
    asked = [*RACERS, chance.choice(WORKERS)]
    chance.shuffle(asked)
    step: Record = {
        "id": f"race{number}",
        "ask": asked,
        "prompt": f"WORD race{number}-{{{{ item }}}}.",
        "until": "results | selectattr('status', 'equalto', 'done') | list | length > 0",
    }
    return step | chance.choice([{}, {"isolate": "worktree", "merge": "none"}])


def _called(chance: Random, number: int) -> Record:
    """A flow with an ``until`` of its own, for some words at once."""
    return {
        "id": f"call{number}",
        "call": "inner",
        "with": {"word": f"call{number}-{{{{ item }}}}"},
        "for_each": [*WORDS[: chance.randint(1, 2)]],
        "concurrency": chance.randint(1, 2),
    }
