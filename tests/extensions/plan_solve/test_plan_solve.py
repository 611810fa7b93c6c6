"""System C, plan and solve: its worked example, every way it can take, and from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role import RunReport, fork, resume
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.extensions.plan_solve.plan_solver import PlanSolver, create_plan_solver
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.console import console
from tests.support.plan_solve import (
    ANSWERED,
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
from tests.support.scripted_codex import codex_replaced
from tests.support.teams import Record, TeamFolder, read, read_lines

pytestmark = pytest.mark.usefixtures("scripted_codex")


def calls(folder: Path, turn: str) -> list[tuple[str, bool, str]]:
    return [(each["tool"], each["success"], each["text"]) for each in read_lines(folder / turn / "tool_calls.jsonl")]


def test_planner_is_asked_until_its_plan_is_valid(tmp_path: Path) -> None:
    """Its first plan, an answer without tools, is invalid. Tools reject the second. It thinks, then writes again."""
    circle: Record = {"json": {"todos": [todo("A", "B"), todo("B", "A"), {"id": "C", "content": "Do C"}]}}
    thinks: Record = {"steps": [call("write_todos", todos=[todo("A", "Z")]), call("validate_plan"), {"text": "Hm."}]}
    team = team_of(tmp_path, [circle, {**thinks, "repairs": [planned(todo("A"))]}], [solved("a")])
    assert solve(team).outcome == "success"
    (problem,) = team.handed("planner_agent", 2)["problems"]
    assert problem.startswith("tasks depend on each other: ")
    (rejected,) = [text for _, good, text in calls(team.runs / "latest", "planner_agent/turn_002") if not good]
    assert "A depends on Z, which is not a task" in rejected
    assert read(team.runs / "latest/planner_agent/turn_002/turn.json")["outcome"] == "unfinished"
    assert team.handed("solver")["task"]["dependencies"] == []
    assert [each["result"] for each in results(team)] == ["a"]


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
    assert " ⊘ B Do B: not started: it needs A\n" in shown
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


def test_no_run_begins_with_a_concurrency_of_nothing(tmp_path: Path) -> None:
    team = team_of(tmp_path, [TWO], [])
    with pytest.raises(UsageError, match=r'the input "concurrency" must be at least 1'):
        solve(team, concurrency=0)
    assert not team.runs.exists()


def test_fork_from_step_reuses_plan_and_results(doubted: tuple[TeamFolder, RunReport]) -> None:
    team, earlier = doubted
    team.write_plays(verifier=[VERIFIED])
    team.events.clear()
    changes: ForkKeywords = {"playbook": str(team.playbook)}
    report = fork(earlier.run_id, runs_dir=team.runs, start="verify", changes=changes, on_event=team.events.append)
    assert (report.outcome, asked(team)) == ("success", ["verifier"])
    assert history(team) == ["IDLE", "PLANNING", "SOLVING", "VERIFYING", "FINISHED"]
    assert history(team, "B") == ["PENDING", "IN_PROGRESS", "COMPLETED"]
    assert (report.folder / "answer.md").read_text() == "the answer\n"


SOLVER: Record = {"prompt_text": "Solve it well.", "tools": ["terminate"], "max_steps": 2}


def team_in_python(folder: Path, solvers: list[Record], name: str = "solver", **more: list[Record]) -> TeamFolder:
    plays = {"planner_agent": [TWO], name: solvers, "aggregator": [ANSWERED], "verifier": [VERIFIED], **more}
    return TeamFolder(folder, {"unused": {}}, plays)


def solver_of(team: TeamFolder, *roles: str | Path | None, **options: Any) -> PlanSolver:
    own = {"playbook": str(team.playbook), "runs_dir": team.runs, "workspace": team.workspace, "run_tests": False}
    planner, solver, aggregator, *_ = *roles, None, None, None
    return create_plan_solver(planner, solver, aggregator, **{**own, **options})


@pytest.mark.real
@pytest.mark.sample("plan_solve")
def test_shipped_roles_return_context_results_and_statistics(tmp_path: Path) -> None:
    """The aggregate is returned as well."""
    team = team_in_python(tmp_path, [solved("a"), solved("b")])
    came = solver_of(team, concurrency=4).run("reach it")
    assert came.report.exit_code == 0
    assert (came.context["goal"], [each["id"] for each in came.context["tasks"]]) == ("reach it", ["A", "B"])
    assert came.context["verification"] == {"verified": True, "issues": []}
    assert [(each["id"], each["status"], each["result"]) for each in came.results] == [
        ("A", "done", "a"),
        ("B", "done", "b"),
    ]
    assert came.aggregate == {"answer": "the answer", "summary": "answered"}
    told = {name: came.statistics[name] for name in ("tasks", "done", "failed", "skipped", "turns")}
    assert told == {"tasks": 2, "done": 2, "failed": 0, "skipped": 0, "turns": 5}


@pytest.mark.long
def test_roles_by_file_by_name_and_by_prompt_work_and_resume(tmp_path: Path) -> None:
    """A role may be given by its file, by its name or as a prompt, also in a run that is resumed."""
    (tmp_path / "my_solver.yaml").write_text(yaml.safe_dump({"name": "my_solver", **SOLVER}))
    team = team_in_python(tmp_path, [GIVES_UP], "my_solver", my_planner=[TWO])
    (tmp_path / "roles/my_planner.yaml").write_text(
        yaml.safe_dump({"prompt_text": "Plan it well.", "tools": ["write_todos", "validate_plan", "terminate"]})
    )
    team.write_plays(my_solver=[solved("a"), solved("b")])
    made = solver_of(team, "my_planner", tmp_path / "my_solver.yaml", "Put it together.", roles=tmp_path / "roles")
    came = made.run("reach it")
    assert [each["result"] for each in came.results] == ["a", "b"]
    assert [each["id"] for each in came.context["tasks"]] == ["A", "B"]
    assert "Plan it well." in team.prompt("my_planner")
    assert "Solve it well." in team.prompt("my_solver")
    assert "Put it together." in team.prompt("aggregator")
    assert resume("latest", runs_dir=team.runs).outcome == "success"


def test_planner_that_gives_up_leaves_nothing_but_the_report(tmp_path: Path) -> None:
    came = solver_of(team_in_python(tmp_path, [], planner_agent=[GIVES_UP])).run("reach it")
    assert (came.report.outcome, came.results, came.aggregate, came.context["tasks"]) == ("gave_up", [], None, [])


def test_confirm_option_solves_nothing_without_confirmation(tmp_path: Path) -> None:
    came = solver_of(team_in_python(tmp_path, []), confirm=True).run("reach it")
    assert (came.report.exit_code, came.results) == (4, [])
    assert [each["id"] for each in came.context["tasks"]] == ["A", "B"]


@pytest.mark.parametrize("concurrency", [0, -1, True, "4"])
def test_concurrency_of_nothing_is_refused(concurrency: Any) -> None:
    with pytest.raises(UsageError, match="concurrency must be at least 1"):
        create_plan_solver(concurrency=concurrency)


def test_invalid_arguments_are_reported_before_start(tmp_path: Path) -> None:
    team = team_in_python(tmp_path, [])
    with pytest.raises(UsageError, match=r'role file not found: "nobody\.yaml"'):
        solver_of(team, "nobody").run("reach it")
    with pytest.raises(DefinitionError, match=r"missing\.yaml"):
        solver_of(team, tmp_path / "missing.yaml").run("reach it")
    with pytest.raises(UsageError, match="has its own flow"):
        create_plan_solver(flow="cycles")
    assert not team.runs.exists()
