"""Every path through plan-solve, without any process. docs/reference/flows has its drawing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import Case, System
from tests.support.plan_solve import todo
from tests.support.scripted import FAILS

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
