"""Runs of the flow plan-solve on the real binary: what its roles say, and what came of its tasks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import codex_multi_role
from codex_multi_role import RunReport
from codex_multi_role.option_keywords import ForkKeywords
from codex_multi_role.run_folder import RunFolder, events_with_inherited
from codex_multi_role.run_folder.events import StateChanged
from tests.support.forks import restored
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import Record, TeamFolder, read


def todo(name: str, *needs: str) -> Record:
    """A task of a plan; ``needs``: the ids of the tasks that it waits for."""
    return {"id": name, "content": f"Do {name}", "dependencies": list(needs)}


def call(tool: str, **arguments: Any) -> Record:
    """A step of a turn: a tool call."""
    return {"call": tool, "arguments": arguments}


def planned(*todos: Record) -> Record:
    """A planner's turn that plans by calling its tools."""
    end = call("terminate", status="success")
    return {"steps": [call("write_todos", todos=list(todos)), call("validate_plan"), end, {"json": {"summary": "ok"}}]}


def solved(result: str) -> Record:
    """A solver's answer."""
    return {"json": {"result": result, "summary": f"got {result}"}}


GIVES_UP: Record = {"steps": [call("terminate", status="failure", reason="no data"), solved("none")]}
ANSWERED: Record = {"json": {"answer": "the answer", "summary": "answered"}}
VERIFIED: Record = {"json": {"verified": True, "issues": []}}
DOUBTED: Record = {"json": {"verified": False, "issues": ["a figure is wrong"]}}
TWO = planned(todo("A"), todo("B", "A"))


def team_of(folder: Path, planner: list[Record], solvers: list[Record], verdict: Record = VERIFIED) -> TeamFolder:
    """A team whose planner and solvers play these entries, in order."""
    plays = {"planner_agent": planner, "solver": solvers, "aggregator": [ANSWERED], "verifier": [verdict]}
    return TeamFolder(folder, {"unused": {}}, plays)


def solve(team: TeamFolder, **inputs: object) -> RunReport:
    """Run the flow; ``inputs``: those of the flow."""
    return team.run(flow="plan-solve", inputs=inputs)


def results(team: TeamFolder) -> list[Record]:
    """What the aggregator got of each task, in order."""
    found: list[Record] = team.handed("aggregator")["results"]
    return found


def asked(team: TeamFolder) -> list[str]:
    """The roles of the turns, in the order in which they started, without the numbers of instances."""
    return [event["role"].split(".")[0] for event in team.of_type("turn_started")]


def history(team: TeamFolder, item: str = "") -> list[str]:
    """The states that the run, or its task of that id, went through; the file says what the events say."""
    told = read(team.runs / "latest/states.json")
    found = next(each for each in [told["run"], *told["items"]] if each["item"] == item)
    events = events_with_inherited(RunFolder.find(team.runs, "latest"))
    said = [each for each in events if isinstance(each, StateChanged)]
    states = [each["state"] for each in found["history"]]
    assert states == [each.state for each in said if each.item == item]
    return states


CHAIN = planned(todo("A"), todo("B", "A"), todo("C"))


@pytest.fixture(scope="session")
@codex_replaced()
def solved_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[TeamFolder, Path]:
    """What `solved_chain` gives, and a copy of its folder."""
    team = team_of(tmp_path_factory.mktemp("solved"), [CHAIN], [solved(letter) for letter in "abc"])
    assert solve(team).outcome == "success"
    return team, shutil.copytree(team.folder, tmp_path_factory.mktemp("copy") / "solved", symlinks=True)


@pytest.fixture
def solved_chain(solved_once: tuple[TeamFolder, Path]) -> Iterator[TeamFolder]:
    """A team that has solved `CHAIN`, which is done once: afterwards its folder is as it was again."""
    team, copy = solved_once
    with restored(team.folder, copy):
        yield deepcopy(team)


def restart(team: TeamFolder, task: str, run: str = "latest") -> RunReport:
    """Restart ``task`` of ``run`` with the playbook as it is now."""
    team.events.clear()
    changes: ForkKeywords = {"playbook": str(team.playbook)}
    return codex_multi_role.fork(run, task=task, runs_dir=team.runs, changes=changes, on_event=team.events.append)


def solvers(team: TeamFolder, *plays: Record) -> None:
    """What the solvers say from now on, by their tasks."""
    team.write_plays(solver=list(plays))
