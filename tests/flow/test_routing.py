from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import End, GoTo, after, may_call, new_state
from codex_multi_role.flow.conditions import known_inputs
from codex_multi_role.flow.routing import ends
from codex_multi_role.reading.places import Place
from tests.support.flows import flow_of

ROUTES = """
- {when: "steps.build.red", to: plan}
- {when: "steps.build.visits >= inputs.most", end: worn_out, exit: 1}
- {when: "roles.builder.status == 'DONE' and steps.plan.status == 'done'", end: finished}
"""


def routed(routes: str = "[]", **keys: object) -> FlowSpec:
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
    flow = routed(ROUTES)
    assert move(flow, red=True, visits=2, planned=True) == "plan"
    assert move(flow, red=False, visits=2, planned=True) == "worn_out 1"
    assert move(flow, red=False, planned=True) == "finished 0"


def test_following_step_comes_next_when_none_holds() -> None:
    assert move(routed(ROUTES), red=False) == "ship"
    assert move(routed()) == "ship"


def test_after_the_last_step_the_goal_is_reached() -> None:
    assert move(routed(), "ship") == "success 0"


def test_entry_without_a_condition_is_always_taken() -> None:
    assert move(routed('[{when: "steps.build.red", end: red, exit: 1}, {to: plan}]'), red=False) == "plan"
    assert move(routed("[{to: build}]")) == "build"


def test_entries_after_the_one_that_holds_are_not_evaluated() -> None:
    assert move(routed('[{when: "cycle < cycles", to: plan}, {when: "steps.build.unknown", to: ship}]')) == "plan"


@pytest.mark.parametrize("routes", ["[]", "[{to: ship}]"])
def test_visit_too_many_ends_the_run_without_its_goal(routes: str) -> None:
    flow = routed(routes, limits={"visits": 2})
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
    flow = routed(f'[{{when: "false", to: plan}}, {{when: "{condition}", to: ship}}]')
    with pytest.raises(DefinitionError) as caught:
        move(flow, red="x")
    assert str(caught.value).startswith("flows/x.yaml: steps[1]: next[1].when: ")
    assert problem in str(caught.value)


LIMITED = flow_of("steps: [{call: topic, limits: {depth: 2}}]").steps[0]


@pytest.mark.parametrize(
    ("under_way", "carried_out"),
    [
        (["main"], True),
        (["main", "topic"], True),
        (["topic", "other", "topic"], True),
        (["main", "topic", "other", "topic", "topic"], False),
    ],
)
def test_flow_runs_within_itself_as_often_as_its_limit_says(under_way: list[str], carried_out: bool) -> None:
    assert may_call(LIMITED, under_way) == carried_out


def test_call_without_a_limit_is_always_carried_out() -> None:
    assert may_call(flow_of("steps: [{call: topic}]").steps[0], ["topic"] * 9)


def test_known_inputs_are_constants_known_names_and_defaults() -> None:
    called = flow_of("{inputs: {a: 1, b: {type: integer}, c: x, d: {required: false}, e: 2.5}, steps: [{check: t}]}")
    step = flow_of(
        "steps: [{call: x, with: {a: '{{ steps.s.n }}', b: '{{ inputs.b }}', e: '{{ 3 }}', d: 'to {{ goal }}'}}]"
    ).steps[0]
    known = known_inputs(
        step, called, {("inputs", "b"): "7", ("cycle",): ("steps", "s", "visits")}, Place(Path("here"))
    )
    assert known == {"b": 7, "c": "x", "e": 3.0}


def test_every_end_once_with_its_exit_code() -> None:
    flow = flow_of("""steps:
      - {check: a, next: [{when: "steps.a.red", end: red, exit: 1}, {when: "steps.a.odd", end: red}]}
      - {check: b, limits: {visits: 2}, next: [{when: "steps.b.red", end: red, exit: 1}]}
    """)
    assert ends(flow) == (End("red", 1), End("red", 0), End("b_visits_used_up", 1), End("success", 0))


def test_last_step_that_always_goes_elsewhere_is_not_a_success() -> None:
    assert ends(flow_of('steps: [{check: a, next: [{when: "cycle < 3", to: a}, {end: over, exit: 1}]}]')) == (
        End("over", 1),
    )
