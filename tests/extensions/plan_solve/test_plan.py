from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.checks import find_check
from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.plan_solve.plan import check_plan, plan_problems
from tests.support.checks import MakeContext, run_check
from tests.support.plan_solve import todo as task


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
