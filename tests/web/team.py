"""A small project with flows to be watched, decided in, and started from a page; a playbook answers."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from tests.engine.test_resume import NEVER
from tests.engine.test_tools import calls
from tests.teams import Record, TeamFolder, say

SHIP: Record = {
    "description": "Something is made, a person decides.",
    "inputs": {
        "size": {"type": "integer", "default": 3, "minimum": 1, "maximum": 9, "description": "how many"},
        "colour": {"default": "red", "choices": ["red", "blue"]},
        "careful": {"type": "boolean", "default": True},
        "names": {"type": "list", "default": ["a"]},
        "place": {"type": "path"},
    },
    "steps": [
        {"id": "make", "ask": "maker"},
        {
            "id": "ok",
            "review": "Ship {{ inputs.size }} {{ inputs.colour }}?",
            "show": "{{ roles.maker }}",
            "next": [
                {"when": "steps.ok.approved and steps.ok.comment == 'good'", "end": "shipped"},
                {"when": "steps.ok.approved", "end": "approved"},
                {"end": "refused", "exit": 1},
            ],
        },
    ],
}
FLOWS: dict[str, Record] = {
    "ship": SHIP,
    "ask": {"goal": {"default": "ask somebody"}, "steps": [{"ask": "asker"}]},
    "stall": {"goal": {"default": "wait"}, "steps": [{"ask": "sleeper"}]},
    "tasks": {
        "goal": {"default": "wait"},
        "states": {"begin": "IDLE", "success": "FINISHED", "failure": "FAILED"},
        "steps": [{"id": "each", "ask": "sleeper", "for_each": [{"id": "T1"}, {"id": "T2"}], "concurrency": 2}],
    },
}
PLAYBOOK = "scripted"
QUICK = {"CODEX_MULTI_ROLE_RUN_TESTS": "false"}


def project(folder: Path) -> TeamFolder:
    """Roles, flows and the playbook `PLAYBOOK` in ``folder/roles``."""
    question = {"question": "Which database?", "options": ["sqlite", "postgres"]}
    limits = {"idle_seconds": 120, "turn_seconds": 240}
    team = TeamFolder(
        folder,
        {"maker": {}, "asker": {"tools": ["ask_user"]}, "sleeper": {"limits": limits}},
        {"maker": [say("it")], "asker": [calls("ask_user", question)], "sleeper": [NEVER] * 4},
    )
    for name, flow in FLOWS.items():
        path = folder / "roles/flows" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(flow))
    (folder / "roles/playbooks").mkdir()
    shutil.copyfile(team.playbook, folder / "roles/playbooks" / f"{PLAYBOOK}.yaml")
    return team
