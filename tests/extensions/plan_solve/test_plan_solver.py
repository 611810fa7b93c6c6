"""Plan and solve from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role import resume
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.extensions.plan_solve.plan_solver import PlanSolver, create_plan_solver
from tests.support.plan_solve import ANSWERED, GIVES_UP, TWO, VERIFIED, solved
from tests.support.teams import Record, TeamFolder

pytestmark = pytest.mark.usefixtures("scripted_codex")

SOLVER: Record = {"prompt_text": "Solve it well.", "tools": ["terminate"], "max_steps": 2}


def team_of(folder: Path, solvers: list[Record], name: str = "solver", **more: list[Record]) -> TeamFolder:
    plays = {"planner_agent": [TWO], name: solvers, "aggregator": [ANSWERED], "verifier": [VERIFIED], **more}
    return TeamFolder(folder, {"unused": {}}, plays)


def solver_of(team: TeamFolder, *roles: str | Path | None, **options: Any) -> PlanSolver:
    own = {"playbook": str(team.playbook), "runs_dir": team.runs, "workspace": team.workspace, "run_tests": False}
    planner, solver, aggregator, *_ = *roles, None, None, None
    return create_plan_solver(planner, solver, aggregator, **{**own, **options})


def prompt(team: TeamFolder, role: str) -> str:
    return (team.runs / f"latest/{role}/turn_001/prompt.txt").read_text()


@pytest.mark.real
@pytest.mark.sample("plan_solve")
def test_shipped_roles_return_context_results_and_statistics(tmp_path: Path) -> None:
    """The aggregate is returned as well."""
    team = team_of(tmp_path, [solved("a"), solved("b")])
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
    team = team_of(tmp_path, [GIVES_UP], "my_solver", my_planner=[TWO])
    (tmp_path / "roles/my_planner.yaml").write_text(
        yaml.safe_dump({"prompt_text": "Plan it well.", "tools": ["write_todos", "validate_plan", "terminate"]})
    )
    team.plays["my_solver"] = [solved("a"), solved("b")]
    team.write_plays()
    made = solver_of(team, "my_planner", tmp_path / "my_solver.yaml", "Put it together.", roles=tmp_path / "roles")
    came = made.run("reach it")
    assert [each["result"] for each in came.results] == ["a", "b"]
    assert [each["id"] for each in came.context["tasks"]] == ["A", "B"]
    assert "Plan it well." in prompt(team, "my_planner")
    assert "Solve it well." in prompt(team, "my_solver")
    assert "Put it together." in prompt(team, "aggregator")
    assert resume("latest", runs_dir=team.runs).outcome == "success"


def test_planner_that_gives_up_leaves_nothing_but_the_report(tmp_path: Path) -> None:
    came = solver_of(team_of(tmp_path, [], planner_agent=[GIVES_UP])).run("reach it")
    assert (came.report.outcome, came.results, came.aggregate, came.context["tasks"]) == ("gave_up", [], None, [])


def test_confirm_option_solves_nothing_without_confirmation(tmp_path: Path) -> None:
    came = solver_of(team_of(tmp_path, []), confirm=True).run("reach it")
    assert (came.report.exit_code, came.results) == (4, [])
    assert [each["id"] for each in came.context["tasks"]] == ["A", "B"]


@pytest.mark.parametrize("concurrency", [0, -1, True, "4"])
def test_concurrency_of_nothing_is_refused(concurrency: Any) -> None:
    with pytest.raises(UsageError, match="concurrency must be at least 1"):
        create_plan_solver(concurrency=concurrency)


def test_invalid_arguments_are_reported_before_start(tmp_path: Path) -> None:
    team = team_of(tmp_path, [])
    with pytest.raises(UsageError, match=r'role file not found: "nobody\.yaml"'):
        solver_of(team, "nobody").run("reach it")
    with pytest.raises(DefinitionError, match=r"missing\.yaml"):
        solver_of(team, tmp_path / "missing.yaml").run("reach it")
    with pytest.raises(UsageError, match="has its own flow"):
        create_plan_solver(flow="cycles")
    assert not team.runs.exists()
