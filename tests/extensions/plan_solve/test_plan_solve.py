"""System C, plan and solve: its worked example, and every way it can take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role import RunOptions, RunReport, fork, run
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.console import console
from tests.support.plan_solve import (
    DOUBTED,
    GIVES_UP,
    TWO,
    VERIFIED,
    asked,
    call,
    history,
    planned,
    results,
    solve,
    solved,
    team_of,
    todo,
)
from tests.support.reviews import answer
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import Record, TeamFolder, read, read_lines

pytestmark = pytest.mark.usefixtures("scripted_codex")


def handed(team: TeamFolder, path: str) -> Any:
    prompt = (team.runs / "latest" / path / "prompt.txt").read_text()
    return json.JSONDecoder().raw_decode(prompt.split("INCOMING HANDOFF (JSON):\n")[1])[0]


def calls(folder: Path, turn: str) -> list[tuple[str, bool, str]]:
    return [(each["tool"], each["success"], each["text"]) for each in read_lines(folder / turn / "tool_calls.jsonl")]


@pytest.mark.long("extensions/plan_solve/test_plan_solver.py::test_shipped_roles_return_context_results_and_statistics")
def test_worked_example_of_the_circle(tmp_path: Path) -> None:
    (tmp_path / "circle.md").write_text("The area of a circle is pi * r**2, its circumference 2 * pi * r.\n")
    options = RunOptions(
        goal="the circle",
        flow="plan-solve",
        playbook="circle",
        runs_dir=tmp_path / "runs",
        workspace=tmp_path,
        run_tests=False,
    )
    report = run(options)
    assert (report.exit_code, report.outcome, report.totals["turns"]) == (0, "success", 7)
    latest = read(report.folder / "controller_state.json")["latest_json_by_role"]
    assert latest["aggregator"]["answer"] == "Area 78.54 m², circumference 31.42 m"
    assert (report.folder / "answer.md").read_text() == "Area 78.54 m², circumference 31.42 m\n"
    assert report.result == {
        "title": "Answer",
        "text": "Area 78.54 m², circumference 31.42 m",
        "file": "answer.md",
        "format": "markdown",
        "figures": {"tasks": 4, "tasks failed": 0, "verified": True},
    }
    assert read(report.folder / "run.json")["result"] == report.result
    assert [each["id"] for each in latest["planner_agent"]["todos"]] == ["T1", "T2", "T3", "T4"]
    made = {each for path in report.folder.glob("solver*/turn_*") for each in calls(report.folder, str(path))}
    assert ("calculator", True, "78.54") in made
    assert ("calculator", True, "31.42") in made
    assert any(tool == "knowledge_lookup" and text.startswith("circle.md:1: The area") for tool, _, text in made)
    assert [tool for tool, _, _ in calls(report.folder, "planner_agent/turn_001")] == [
        "write_todos",
        "validate_plan",
        "terminate",
    ]


@pytest.mark.long
def test_tasks_run_in_parallel_once_dependencies_are_done(
    tmp_path: Path,
) -> None:
    """The results are in the order of the plan."""
    plan = planned(todo("C", "A", "B"), todo("A"), todo("B"))
    team = team_of(tmp_path, [plan], [solved("c"), solved("a"), solved("b")])
    assert solve(team, concurrency=3).outcome == "success"
    assert [(each["result"], each["status"]) for each in results(team)] == [("c", "done"), ("a", "done"), ("b", "done")]
    begun = [event for event in team.events if event["type"] in ("turn_started", "turn_ended")]
    of_solvers = [(event["type"], event["role"]) for event in begun if event["role"].startswith("solver")]
    assert len({role for _, role in of_solvers[:4]}) == 2
    assert [kind for kind, _ in of_solvers[4:]] == ["turn_started", "turn_ended"]
    assert handed(team, f"{of_solvers[4][1]}/turn_002")["task"]["id"] == "C"
    assert asked(team)[-2:] == ["aggregator", "verifier"]
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FINISHED"]
    assert history(team, "C") == ["PENDING", "IN_PROGRESS", "COMPLETED"]


def test_planner_is_asked_until_its_plan_is_valid(tmp_path: Path) -> None:
    """Its first plan, an answer without tools, is invalid. Tools reject the second. It thinks, then writes again."""
    circle: Record = {"json": {"todos": [todo("A", "B"), todo("B", "A"), {"id": "C", "content": "Do C"}]}}
    thinks: Record = {"steps": [call("write_todos", todos=[todo("A", "Z")]), call("validate_plan"), {"text": "Hm."}]}
    team = team_of(tmp_path, [circle, {**thinks, "repairs": [planned(todo("A"))]}], [solved("a")])
    assert solve(team).outcome == "success"
    (problem,) = handed(team, "planner_agent/turn_002")["problems"]
    assert problem.startswith("tasks depend on each other: ")
    (rejected,) = [text for _, good, text in calls(team.runs / "latest", "planner_agent/turn_002") if not good]
    assert "A depends on Z, which is not a task" in rejected
    assert read(team.runs / "latest/planner_agent/turn_002/turn.json")["outcome"] == "unfinished"
    assert handed(team, "solver/turn_001")["task"]["dependencies"] == []
    assert [each["result"] for each in results(team)] == ["a"]


@pytest.mark.long
def test_planner_that_terminates_in_failure_fails_the_run(tmp_path: Path) -> None:
    team = team_of(tmp_path, [GIVES_UP], [])
    report = solve(team)
    assert (report.exit_code, report.outcome) == (3, "gave_up")
    assert history(team) == ["IDLE", "PLANNING", "FAILED"]
    team.plays |= {"planner_agent": [TWO], "solver": [solved("a"), solved("b")]}
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).outcome == "success"
    assert history(team)[2:] == ["FAILED", "PLANNING", "SOLVING", "VERIFYING", "FINISHED"]


@pytest.mark.long
def test_failed_task_is_tried_again(tmp_path: Path) -> None:
    """The solver finds nothing at first; what it looks for is there when it is asked again."""
    found: Record = {"when": "'secret' in tool_outputs[0]", **solved("found")}
    looks: Record = {"steps": [call("knowledge_lookup", query="secret"), {"choose": [found, GIVES_UP["steps"][0]]}]}
    looks["steps"].append(solved("none"))
    team = team_of(tmp_path, [planned(todo("A"))], [looks])

    def provide(event: Record) -> None:
        team.events.append(event)
        if event["type"] == "turn_ended" and event["outcome"] == "gave_up":
            (team.workspace / "a.txt").write_text("the secret")

    report = run(team.options(flow="plan-solve"), provide)
    assert report.outcome == "success"
    assert [turn for turn in team.turns() if turn[0] == "solver"] == [
        ("solver", 1, "gave_up"),
        ("solver", 2, "completed"),
    ]
    assert [each["result"] for each in results(team)] == ["found"]
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "FAILED", "IN_PROGRESS", "COMPLETED"]


def test_failed_and_skipped_tasks_are_visible_to_aggregator(tmp_path: Path) -> None:
    """A task that fails for good is failed in the results, and the tasks that depend on it are skipped."""
    plan = planned(todo("A"), todo("B", "A"), todo("C"))
    team = team_of(tmp_path, [plan], [GIVES_UP, solved("never"), solved("c")])
    report = solve(team)
    assert (report.exit_code, report.outcome) == (1, "tasks_failed")
    assert [(each["status"], each["error"]) for each in results(team)] == [
        ("failed", "role solver gave up: no data"),
        ("skipped", "not started: it needs A"),
        ("done", ""),
    ]
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FAILED"]
    assert history(team, "A") == ["PENDING", "IN_PROGRESS", "FAILED", "IN_PROGRESS", "FAILED"]
    assert history(team, "B") == ["PENDING", "SKIPPED"]
    shown = console("show", "latest", folder=tmp_path).stdout
    assert "states     IDLE → PLANNING → SOLVING → VERIFYING → FAILED\n" in shown
    assert "task       B (solve.1.1): PENDING → SKIPPED: not started: it needs A\n" in shown
    before = read(team.runs / "latest/states.json")
    assert team.resume().outcome == "tasks_failed"
    assert read(team.runs / "latest/states.json") == before


@pytest.fixture(scope="module")
@codex_replaced()
def doubted(tmp_path_factory: pytest.TempPathFactory) -> tuple[TeamFolder, RunReport]:
    """A run whose answer was not verified."""
    team = team_of(tmp_path_factory.mktemp("doubted"), [TWO], [solved("a"), solved("b")], DOUBTED)
    return team, solve(team)


def test_unverified_answer_is_not_success(doubted: tuple[TeamFolder, RunReport]) -> None:
    team, report = doubted
    assert (report.exit_code, report.outcome) == (1, "not_verified")
    assert report.reason == "the verifier found: a figure is wrong"
    shown = console("show", report.run_id, folder=team.folder)
    assert "reason     the verifier found: a figure is wrong\n" in shown.stdout, shown.stderr
    assert read(report.folder / "run.json")["reason"] == report.reason
    assert f"next: codex-multi-role fork {report.run_id} --from solve" in shown.stdout
    assert not (report.folder / "answer.md").exists()


@pytest.mark.parametrize("concurrency", [0, -1])
def test_no_run_begins_with_a_concurrency_of_nothing(tmp_path: Path, concurrency: int) -> None:
    team = team_of(tmp_path, [TWO], [])
    with pytest.raises(UsageError, match=r'the input "concurrency" must be at least 1'):
        solve(team, concurrency=concurrency)
    assert not team.runs.exists()


@pytest.mark.long
def test_unconfirmed_plan_is_not_solved(tmp_path: Path) -> None:
    team = team_of(tmp_path, [TWO], [solved("a"), solved("b")])
    report = solve(team, confirm=True)
    assert (report.exit_code, asked(team)) == (4, ["planner_agent"])
    assert history(team) == ["IDLE", "PLANNING"]
    answer(team, True)
    assert team.resume().outcome == "success"
    assert asked(team) == ["solver", "solver", "aggregator", "verifier"]


def test_fork_from_step_reuses_plan_and_results(doubted: tuple[TeamFolder, RunReport]) -> None:
    team, earlier = doubted
    team.plays["verifier"] = [VERIFIED]
    team.write_plays()
    team.events.clear()
    changes: ForkKeywords = {"playbook": str(team.playbook)}
    report = fork(earlier.run_id, runs_dir=team.runs, start="verify", changes=changes, on_event=team.events.append)
    assert (report.outcome, asked(team)) == ("success", ["verifier"])
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FINISHED"]
    assert history(team, "B") == ["PENDING", "IN_PROGRESS", "COMPLETED"]
    assert (report.folder / "answer.md").read_text() == "the answer\n"
