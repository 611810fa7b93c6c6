"""The run that is disturbed: handoffs, a repair, files, a patch, a command that asks, and work for two at a time.

plan     planner names three things
solve    solver does each of them, two at a time, and hands in a file for it
try      runner runs a command, which Codex asks us about
note     patcher changes the log by itself
judge    judge's first answer needs a repair; CONTINUE leads back to ``note``, DONE ends the run
"""

from __future__ import annotations

from pathlib import Path

from tests.chaos.profiles import Profile
from tests.support.teams import Record, TeamFolder, say, with_flow

RUN_ID = "disturbed"
THINGS = ["axe", "bow", "cup"]

ROLES: dict[str, Record] = {
    "planner": {},
    "solver": {"prompt_flags": {"allow_file_suggestions": True}, "behaviors": {"apply_files": True}},
    "runner": {
        "sandbox": "workspace-write",
        "approval_policy": "untrusted",
        "auto_approve": {"commands": True},
    },
    "patcher": {"prompt_flags": {"allow_write": True}},
    "judge": {"behaviors": {"can_finish": True}},
}
STEPS: list[Record] = [
    {"id": "plan", "ask": "planner"},
    {
        "id": "solve",
        "ask": "solver",
        "prompt": "Make {{ item }}.",
        "for_each": "{{ steps.plan.things }}",
        "max_items": len(THINGS),
        "concurrency": 2,
    },
    {"id": "try", "ask": "runner"},
    {"id": "note", "ask": "patcher"},
    {
        "id": "judge",
        "ask": "judge",
        "next": [{"when": "steps.judge.visits >= 2", "end": "gave_up", "exit": 1}, {"to": "note"}],
    },
]
NEW_LOG = "*** Begin Patch\n*** Add File: doc/log.md\n+# Log\n+first\n*** End Patch"
# Done twice, this leaves two lines.
MORE_LOG = "*** Begin Patch\n*** Update File: doc/log.md\n@@\n # Log\n+second\n*** End Patch"
COMMAND: Record = {"call": "exec_command", "arguments": {"cmd": "echo ran >> ran.txt"}}


def asked(answer: Record, *work: Record) -> Record:
    """An entry: ``work``, then ``answer``; and the answer again as often as it is asked for, its message being lost."""
    first: Record = {"steps": [*work, answer]} if work else answer
    return {**first, "repairs": [answer, answer]}


def made(thing: str) -> Record:
    return asked(say(f"made {thing}", files=[{"path": f"things/{thing}.txt", "content": f"{thing}\n"}]))


PLAYS: dict[str, list[Record]] = {
    "planner": [asked(say("three things", things=THINGS, analysis_md="# Why\n\n" + "Because. " * 10_000))],
    "solver": [made(thing) for thing in THINGS],
    "runner": [asked(say("it ran"), COMMAND)],
    "patcher": [asked(say("began the log"), {"patch": NEW_LOG}), asked(say("went on with it"), {"patch": MORE_LOG})],
    "judge": [
        {"text": "I am not sure.", "repairs": [say("go on", status="CONTINUE")] * 2},
        asked(say("well done", status="DONE")),
    ],
}


def new_team(folder: Path, profile: Profile) -> TeamFolder:
    limits = {"idle_seconds": profile.idle_seconds, "turn_seconds": profile.turn_seconds}
    team = TeamFolder(folder, {name: {**keys, "limits": limits} for name, keys in ROLES.items()}, PLAYS)
    return with_flow(team, {"steps": STEPS})


def run_arguments(team: TeamFolder, codex: Path) -> list[str]:
    """The command line of the run."""
    options = {
        "--goal": "make things",
        "--cycles": "1",
        "--flow": "own",
        "--roles": str(team.folder / "roles"),
        "--workspace": str(team.workspace),
        "--run-id": RUN_ID,
        "--playbook": str(team.playbook),
        "--codex-bin": str(codex),
    }
    return ["run", *(part for option in options.items() for part in option), "--no-run-tests", *common_arguments(team)]


def resume_arguments(team: TeamFolder, codex: Path) -> list[str]:
    """The command line that goes on with the run."""
    return ["resume", RUN_ID, "--codex-bin", str(codex), *common_arguments(team)]


def common_arguments(team: TeamFolder) -> list[str]:
    return ["--runs-dir", str(team.runs), "--quiet"]
