"""Batches of a small team, run by the command in this process; each goal is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from codex_multi_role.extensions.machines.batches.goal_file import Goal
from codex_multi_role.extensions.machines.batches.goal_line import GoalLine
from codex_multi_role.extensions.machines.batches.planned_runs import Defaults
from tests.support.console import Completed, console, environment
from tests.support.teams import Record, TeamFolder, read_lines, say

OF_TEAM = ("--roles=roles", "--playbook=playbook.yaml", "--no-run-tests", "--cycles=1")


def goals(*lines: Record) -> list[Goal]:
    """The goals of a file with these lines."""
    return [Goal("goals.jsonl", number, GoalLine.model_validate(line)) for number, line in enumerate(lines, 1)]


def defaults(folder: Path, given: Iterable[str] = (), **values: object) -> Defaults:
    """What `batch` was given, in a folder."""
    return Defaults({"workspace": folder, "runs_dir": folder / "runs", **values}, frozenset({*given, *values}), folder)


def one_role(folder: Path, *plays: Record) -> TeamFolder:
    """A team whose only role may finish, and does so at once if it is not told what to answer."""
    role: Record = {"behaviors": {"can_finish": True}}
    return TeamFolder(folder, {"one": role}, {"one": list(plays) or [say(status="DONE")] * 9})


def write_goals(team: TeamFolder, *lines: Record) -> None:
    """Write ``goals.jsonl`` beside the team; a goal has its own workspace if it names none."""
    for number, line in enumerate(lines, 1):
        if not {"workspace", "repository", "repositories"} & line.keys():
            line["workspace"] = f"work-{number}"
        (team.folder / line.get("workspace", ".")).mkdir(exist_ok=True)
    (team.folder / "goals.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def batch(team: TeamFolder, *arguments: str) -> Completed:
    """``batch goals.jsonl`` of the team, with these arguments."""
    return console("batch", "goals.jsonl", *OF_TEAM, *arguments, folder=team.folder)


def results(team: TeamFolder, name: str = "goals") -> dict[str, Record]:
    """The lines of the result file, by the goal's ID."""
    lines = read_lines(team.runs / "batches" / name / "results.jsonl")
    return {line["id"]: line for line in lines}


@contextmanager
def started(team: TeamFolder, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which prints events; gone afterwards."""
    command = [sys.executable, "-m", "codex_multi_role", "batch", "goals.jsonl", *OF_TEAM, "--json", *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=team.folder, env=environment(**variables), stdout=pipe, stderr=pipe, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
