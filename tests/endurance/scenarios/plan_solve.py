"""The shipped flow ``plan-solve``: a plan made with tools, four tasks, two at a time, one after those it needs."""

from __future__ import annotations

from tests.endurance.scenarios.scenario import Scenario
from tests.support.teams import Record

NEEDS = {"A": [], "B": [], "C": ["A", "B"], "D": []}
TODOS = [{"id": name, "content": f"Do {name}", "dependencies": needs} for name, needs in NEEDS.items()]


def _call(tool: str, **arguments: object) -> Record:
    return {"call": tool, "arguments": arguments}


def _solved(result: str) -> Record:
    said = {"json": {"result": result, "summary": "solved"}}
    return {"steps": [_call("calculator", expression="2 * 21"), _call("terminate", status="success"), said]}


_PLAN = [_call("write_todos", todos=TODOS), _call("validate_plan"), _call("terminate", status="success")]

PLAN_SOLVE = Scenario(
    name="plan-solve",
    roles={"unused": {}},
    plays={
        "planner_agent": [{"steps": [*_PLAN, {"json": {"summary": "planned"}}]}],
        "solver": [_solved(name) for name in NEEDS],
        "aggregator": [{"json": {"answer": "all four", "summary": "put together"}}],
        "verifier": [{"json": {"verified": True, "issues": []}}],
    },
    files={"facts.md": ("# Facts\n", 0o644)},
    flow="plan-solve",
    concurrency=2,
    options=("--no-run-tests",),
)
