"""A plan is written, judged, and kept for the flow; every path through plan-solve, without any process.

docs/reference/flows has its drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks import find_check
from codex_multi_role.checks.tools import find_tool
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.plan_solve.plan import check_plan, plan_problems
from codex_multi_role.replies import schema_problems
from tests.support.checks import MakeContext, run_check
from tests.support.paths import Case, System
from tests.support.plan_solve import todo
from tests.support.plan_solve import todo as task
from tests.support.scripted import FAILS
from tests.support.tools import call

INVALID = {"status": "invalid", "problems": ["the plan is empty"]}
VALID = {"status": "valid", "tasks": [todo("A"), todo("B", "A")]}
SOLVED = {"result": "1", "summary": "one"}
DONE = "solve aggregate verify answer"
CONFIRM = {"confirm": True}


def case(path: str, outcome: str, exit_code: int = 1, **more: object) -> Case:
    return Case("plan-solve", path, outcome, exit_code, **more)  # type: ignore[arg-type]


CASES = {
    "valid plan": case(f"plan judge {DONE}", "success", 0),
    "invalid plan": case(f"plan judge plan judge {DONE}", "success", 0, checks={"judge": [INVALID, VALID]}),
    "invalid plan at the limit": case("plan judge " * 3, "no_valid_plan", checks={"judge": [INVALID]}),
    "plan waits": case("plan judge confirm", "waiting_for_review", 4, inputs=CONFIRM),
    "plan approved": case(f"plan judge confirm {DONE}", "success", 0, inputs=CONFIRM, answers=[(True, "")]),
    "plan rejected": case("plan judge confirm", "plan_rejected", inputs=CONFIRM, answers=[(False, "")]),
    "plan rejected with a comment": case(
        f"{'plan judge confirm ' * 2} {DONE}", "success", 0, inputs=CONFIRM, answers=[(False, "shorter"), (True, "")]
    ),
    "plan rejected at the limit": case(
        "plan judge confirm " * 3, "plan_rejected", inputs=CONFIRM, answers=[(False, "shorter")] * 3
    ),
    "task failed": case(f"plan judge {DONE}", "tasks_failed", plays={"solver": [SOLVED, FAILS]}),
    "every task failed": case(f"plan judge {DONE}", "tasks_failed", plays={"solver": [FAILS]}),
    "not verified": case(
        "plan judge solve aggregate verify", "not_verified", plays={"verifier": [{"verified": False, "issues": []}]}
    ),
}
PLAN_SOLVE = System(
    "plan-solve",
    checks={"plan-solve": {"judge": [VALID], "answer": [{}]}},
    plays={
        "planner_agent": [{"todos": []}],
        "solver": [SOLVED],
        "aggregator": [{"answer": "1"}],
        "verifier": [{"verified": True, "issues": []}],
    },
    cases=CASES,
)


@pytest.mark.parametrize("name", CASES)
def test_plan_solve_takes_the_path(tmp_path: Path, name: str) -> None:
    PLAN_SOLVE.check(name, tmp_path)


def test_every_route_of_plan_solve_has_a_case(tmp_path: Path) -> None:
    assert PLAN_SOLVE.unwalked(tmp_path) == set()


def test_planner_learns_why_its_plan_was_not_accepted(tmp_path: Path) -> None:
    rejected = PLAN_SOLVE.check("plan rejected with a comment", tmp_path / "a")
    assert rejected.asks[1].payload == {"problems": [], "comment": "shorter"}
    invalid = PLAN_SOLVE.check("invalid plan", tmp_path / "b")
    assert invalid.asks[1].payload == {"problems": ["the plan is empty"], "comment": ""}


def judged(make_context: MakeContext, **options: Any) -> dict[str, Any]:
    context = make_context({}, **options)
    result = run_check(check_plan, context)
    assert (result["status"] == "valid") == (not result["problems"])
    assert bool(result["tasks"]) == (result["status"] == "valid")
    return result


def test_it_is_registered() -> None:
    assert find_check("plan") is check_plan


def test_valid_plan_is_returned_with_all_its_fields(make_context: MakeContext) -> None:
    (told,) = judged(make_context, tasks=[{"id": "A", "content": "Do A"}])["tasks"]
    assert told == {
        "id": "A",
        "content": "Do A",
        "active_form": "Do A",
        "status": "pending",
        "priority": "medium",
        "dependencies": [],
    }


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([], "the plan is empty"),
        ([task("A"), task("A")], "2 tasks have the id A"),
        ([task("A", "Z")], "A depends on Z, which is not a task"),
        ([task("A", "A")], "tasks depend on each other: A -> A"),
        ([task("A", "B"), task("B", "A")], "tasks depend on each other: "),
        ([task("A")], "1 tasks are too few: at least 2"),
        ([task(name) for name in "ABCDE"], "5 tasks are too many: at most 4"),
        ([{"id": "A"}], "'content' is a required property"),
        ([{**task("A"), "owner": "me"}], "'owner' was unexpected"),
        ("A, then B", "is not of type 'array'"),
        (None, "is not of type 'array'"),
    ],
)
def test_invalid_plan_is_reported(make_context: MakeContext, tasks: object, problem: str) -> None:
    result = judged(make_context, tasks=tasks, min_tasks=2 if tasks else 1, max_tasks=4)
    assert any(problem in each for each in result["problems"]), result


@pytest.mark.parametrize("options", [{}, {"tasks": [], "min_tasks": 0}, {"tasks": [], "most": 3}])
def test_wrong_options_are_refused(make_context: MakeContext, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="check plan: "):
        check_plan(make_context({}, **options))


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=10))
def test_plan_is_valid_exactly_if_its_tasks_can_be_ordered(needs: list[list[int]]) -> None:
    """Ordered means that the tasks can be done one after the other, each after its dependencies."""
    plan = [task(str(index), *map(str, needed)) for index, needed in enumerate(needs)]
    done: set[str] = set()
    for _ in plan:
        done |= {each["id"] for each in plan if {*each["dependencies"]} <= done}
    assert (not plan_problems(plan)) == (len(done) == len(plan))


def test_written_plan_is_kept_with_all_its_fields(tmp_path: Path) -> None:
    result = call("write_todos", {"todos": [{"id": "T1", "content": "look it up"}, task("T2", "T1")]}, tmp_path)
    assert result.text.splitlines() == [
        "The plan has 2 tasks now:",
        "T1 [pending, medium] look it up",
        "T2 [pending, medium] Do T2 (after T1)",
    ]
    assert result.keep["todos"][0] == {
        "status": "pending",
        "priority": "medium",
        "dependencies": [],
        "active_form": "look it up",
        "id": "T1",
        "content": "look it up",
    }


def test_number_of_tasks_is_judged_by_what_the_caller_wants(tmp_path: Path) -> None:
    kept = {"todos": [task("A"), task("B", "A")]}
    assert call("validate_plan", {}, tmp_path, kept).success
    assert "too few: at least 3" in call("validate_plan", {"min_steps": 3}, tmp_path, kept).text
    assert "too many: at most 1" in call("validate_plan", {"max_steps": 1}, tmp_path, kept).text
    refused = call("validate_plan", {}, tmp_path, {"todos": [task(str(number)) for number in range(21)]})
    assert (refused.success, "21 tasks are too many: at most 20" in refused.text) == (False, True)


def test_terminate_says_how_it_ended_and_asks_for_the_summary(tmp_path: Path) -> None:
    result = call("terminate", {"status": "failure", "reason": "no figures"}, tmp_path)
    assert "final summary" in result.text
    assert result.keep == {"terminated": {"status": "failure", "reason": "no figures"}}


@pytest.mark.parametrize(
    "todo", [{"content": "no id"}, {"id": "A"}, {"id": "", "content": "x"}, {**task("A"), "status": "odd"}]
)
def test_task_of_another_form_is_refused(todo: dict[str, Any]) -> None:
    assert schema_problems({"todos": [todo]}, find_tool("write_todos").input_schema)
