from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import End, GoTo, after, new_state

ROUTES = """
- {when: "steps.build.red", to: plan}
- {when: "steps.build.visits >= inputs.most", end: worn_out, exit: 1}
- {when: "roles.builder.status == 'DONE' and steps.plan.status == 'done'", end: finished}
"""


def flow_of(routes: str = "[]", **keys: object) -> FlowSpec:
    """plan -> build -> ship, with ``routes`` after build; ``keys`` are more of ship's."""
    steps: list[dict[str, Any]] = [{"id": step_id, "check": "tests"} for step_id in ("plan", "build", "ship")]
    steps[1]["next"] = yaml.safe_load(routes)
    steps[2] |= keys
    return FlowSpec(name="x", source=Path("flows/x.yaml"), inputs={"most": 2}, steps=steps)


def move(flow: FlowSpec, step_id: str = "build", *, visits: int = 1, planned: bool = False, **output: object) -> str:
    """Where a run goes after ``step_id`` left ``output`` on its last of ``visits``."""
    state = new_state(flow, "goal", {"most": 2}, 3)
    state.absorb_handoff("builder", "builder", 1, {"status": "DONE"})
    if planned:
        state.leave("plan", {})
    for _ in range(visits):
        state.enter(step_id)
    state.leave(step_id, output)
    before = deepcopy(state)
    following = after(flow, flow.step(step_id), state)
    assert state == before, "asking must not change anything"
    return following.step.id if isinstance(following, GoTo) else f"{following.outcome} {following.exit_code}"


def test_first_entry_that_holds_is_taken() -> None:
    flow = flow_of(ROUTES)
    assert move(flow, red=True, visits=2, planned=True) == "plan"
    assert move(flow, red=False, visits=2, planned=True) == "worn_out 1"
    assert move(flow, red=False, planned=True) == "finished 0"


def test_following_step_comes_next_when_none_holds() -> None:
    assert move(flow_of(ROUTES), red=False) == "ship"
    assert move(flow_of()) == "ship"


def test_after_the_last_step_the_goal_is_reached() -> None:
    assert move(flow_of(), "ship") == "success 0"


def test_entry_without_a_condition_is_always_taken() -> None:
    assert move(flow_of('[{when: "steps.build.red", end: red, exit: 1}, {to: plan}]'), red=False) == "plan"
    assert move(flow_of("[{to: build}]")) == "build"


def test_entries_after_the_one_that_holds_are_not_evaluated() -> None:
    assert move(flow_of('[{when: "cycle < cycles", to: plan}, {when: "steps.build.unknown", to: ship}]')) == "plan"


@pytest.mark.parametrize("routes", ["[]", "[{to: ship}]"])
def test_visit_too_many_ends_the_run_without_its_goal(routes: str) -> None:
    flow = flow_of(routes, limits={"visits": 2})
    state = new_state(flow, "goal", {}, 3)
    assert after(flow, flow.steps[1], state) == GoTo(flow.steps[2])
    state.enter("ship")
    assert after(flow, flow.steps[1], state) == GoTo(flow.steps[2])
    state.enter("ship")
    assert after(flow, flow.steps[1], state) == End("ship_visits_used_up", 1)


@pytest.mark.parametrize(
    ("condition", "problem"),
    [("steps.build.coverage < 5", "coverage"), ("steps.build.red < 5", "cannot compare"), ("roles.tester.x", "tester")],
)
def test_condition_that_cannot_be_evaluated_is_named(condition: str, problem: str) -> None:
    flow = flow_of(f'[{{when: "false", to: plan}}, {{when: "{condition}", to: ship}}]')
    with pytest.raises(DefinitionError) as caught:
        move(flow, red="x")
    assert str(caught.value).startswith("flows/x.yaml: steps[1]: next[1].when: ")
    assert problem in str(caught.value)
