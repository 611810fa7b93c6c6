"""What follows a value that a step cannot use, on the real binary: the run fails, and resume and fork pay no more."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.console import console
from tests.support.teams import Record, TeamFolder, read, say, with_flow

pytestmark = pytest.mark.real
LOOK: Record = {"id": "look", "check": "command", "with": {"argv": ["cat", "{{ inputs.file }}"]}}
BUILD: Record = {"id": "build", "ask": "builder"}
GUARDED = "Go. {% if steps.look.json.kind == 'task' %}Do {{ steps.plan.task.title }}.{% endif %}"


@dataclass(frozen=True)
class Case:
    """``steps`` follow ``plan``. ``given``: what the model answers, or the command prints, first and then corrected."""

    name: str
    steps: list[Record]
    given: tuple[object, object]
    fails: str
    problem: str
    again: str
    paid: list[str]


CASES = (
    Case("prompt", [LOOK, {**BUILD, "prompt": GUARDED}], ({"kind": "task"},
         {"kind": "task", "task": {"title": "sort"}}), "build", '"task" has no value (steps.plan.task is '
         "missing)", "plan", ["planner", "builder"]),
    Case("items", [LOOK, {**BUILD, "for_each": "{{ steps.look.json.tasks }}", "max_items": 2}],
         ({"tasks": "a, b"}, {"tasks": ["a", "b"]}), "build", 'must be a list, not a text (steps.look.json.tasks is '
         '"a, b")', "look", ["builder", "builder"]),
    Case("condition", [{**LOOK, "next": [{"when": "steps.look.json.score > 3", "to": "build"}]}, BUILD],
         ({"score": "9"}, {"score": 9}), "look", '">" cannot compare a text with a number (steps.look.json.score is '
         '"9")', "look", ["builder"]),
    Case("option", [LOOK, {"id": "echo", "check": "command", "with": {"argv": ["echo", "{{ steps.look.json.n }}"],
         "json": False}}, BUILD], ({"n": [7]}, {"n": 7}), "echo", "argv[1]: must be text, not [7]",
         "look", ["builder"]),
)  # fmt: skip


def give(team: TeamFolder, case: Case, corrected: bool) -> None:
    value = case.given[corrected]
    team.plays["planner"] = [say(**value) if case.again == "plan" and isinstance(value, dict) else say()]
    (team.folder / "value.json").write_text(json.dumps(value))
    team.write_plays()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_run_that_met_a_wrong_value_pays_only_from_where_it_came(case: Case, tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"planner": {}, "builder": {}}, {"planner": [], "builder": [say("built")] * 3})
    inputs = {"file": str(tmp_path / "value.json")}
    with_flow(team, {"inputs": inputs, "steps": [{"id": "plan", "ask": "planner"}, *case.steps]})
    give(team, case, corrected=False)
    report = team.run(flow="own")
    assert (report.outcome, report.exit_code) == ("wrong_value", 3), report
    assert case.problem in report.reason
    assert [role for role, *_ in team.turns()] == ["planner"]
    assert team.of_type("step_started")[-1]["step"] == case.fails
    again = read(team.runs / "latest/run.json")["suggestion"]
    assert again == f"fork RUN --from {case.again}:1"
    resumed = team.resume()
    assert (resumed.outcome, team.turns()) == ("wrong_value", [])
    assert case.problem in resumed.reason
    shown = console("show", "latest", folder=tmp_path).stdout
    assert f"--from {case.again}:1" in shown
    assert case.problem in " ".join(shown.split())
    give(team, case, corrected=True)
    arguments = shlex.split(again.replace("RUN", report.run_id))
    done = console(*arguments, "--playbook", "playbook.yaml", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["role"] for each in events if each["type"] == "turn_ended"] == case.paid


def test_fork_can_start_at_the_step_that_failed(tmp_path: Path) -> None:
    """It has started, although its templates could not be filled in."""
    case = CASES[0]
    team = TeamFolder(tmp_path, {"planner": {}, "builder": {}}, {"planner": [], "builder": [say("built")] * 3})
    flow: Record = {
        "inputs": {"file": str(tmp_path / "value.json")},
        "steps": [{"id": "plan", "ask": "planner"}, *case.steps],
    }
    with_flow(team, flow)
    give(team, case, corrected=False)
    assert team.run(flow="own").exit_code == 3
    with_flow(team, {**flow, "steps": [*flow["steps"][:2], {**BUILD, "prompt": "Do it."}]})
    done = console("fork", "latest", "--from", "build", "--roles", "roles", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["role"] for each in events if each["type"] == "turn_ended"] == ["builder"]
