from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.catalog.step_spec import StepLimits
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import GoTo, after, new_state
from codex_multi_role.flow.bounds import most_visits
from codex_multi_role.flow.conditions import meanings_of
from tests.support.catalogs import raised
from tests.support.flow_simulation import any_result
from tests.support.flows import TEST_GENERATION, flow_of, specs_of, steps_of
from tests.support.random_flows import VISITED, flows

FLOWS = flows(VISITED).map(lambda drawn: specs_of(drawn)["own"])


def visits_of(flow: FlowSpec, **inputs: object) -> dict[str, int]:
    """With three cycles, the inputs' defaults and ``inputs``."""
    known = {name: spec.default for name, spec in flow.inputs.items() if not spec.required}
    return most_visits(flow, meanings_of(flow, 3, known | inputs))


def test_loop_ended_from_within_allows_others_one_more_visit() -> None:
    """The other steps of the loop may be visited once more than the step that ends it."""
    assert visits_of(flow_of(TEST_GENERATION)) == {"plan": 6, "develop": 6, "execute": 5}


def test_input_that_is_given_counts_instead_of_its_default() -> None:
    assert visits_of(flow_of(TEST_GENERATION), max_iterations=2) == {"plan": 3, "develop": 3, "execute": 2}


@pytest.mark.parametrize(
    ("routes", "most"),
    [
        ('{when: "cycle < cycles", to: a}', 3),
        ('{when: "cycle <= cycles", to: a}', 4),
        ('{when: "cycles > cycle and steps.a.red", to: a}', 3),
        ('{when: "steps.a.red and (inputs.most >= steps.a.visits)", to: a}', 5),
        ("{when: \"steps.a.visits < inputs['half']\", to: a}", 3),
        ("{when: \"steps['a']['visits'] <= 2.5\", to: a}", 3),
        ('{when: "cycle < 3 and cycle < 2", to: a}', 2),
        ('{when: "cycle < 0", to: a}', 1),
        ('{when: "cycle < 2", to: a}, {when: "cycle < 4 and steps.a.red", to: a}', 4),
        ('{when: "steps.a.visits >= 2", end: late}, {to: a}', 2),
        ('{when: "steps.a.red", end: red}, {when: "cycles < cycle or steps.a.green", end: late}, {to: a}', 4),
        ('{when: "cycle == 2", end: late}, {to: a}', 2),
        ('{when: "steps.a.red", end: red}, {when: "cycle < 4", to: a}', 4),
        ('{when: "cycle >= 3", to: b}, {to: a}', 3),
    ],
)
def test_what_limits_the_visits_of_a_step(routes: str, most: int) -> None:
    assert visits_of(steps_of(a=routes, b="{end: done}"))["a"] == most


@pytest.mark.parametrize(
    ("routes", "inputs", "most"),
    [
        ('{when: "inputs.both", to: b}, {to: c}', {}, {"a": 1, "b": 0, "c": 1}),
        ('{when: "inputs.both", to: b}, {to: c}', {"both": True}, {"a": 1, "b": 1, "c": 1}),
        ('{when: "steps.a.red and inputs.both", to: b}, {to: c}', {}, {"a": 1, "b": 0, "c": 1}),
        ('{when: "steps.a.red or not inputs.both", end: done}, {to: b}', {}, {"a": 1, "b": 0, "c": 0}),
        ('{when: "inputs.most > 1", to: c}', {}, {"a": 1, "b": 0, "c": 1}),
        ('{when: "inputs.both", to: a}', {}, {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_step_that_the_inputs_rule_out_is_never_visited(
    routes: str, inputs: dict[str, bool], most: dict[str, int]
) -> None:
    steps = f"[{{id: a, check: tests, next: [{routes}]}}, {{id: b, check: tests}}, {{id: c, check: tests}}]"
    assert visits_of(flow_of(f"{{inputs: {{both: false, most: 3}}, steps: {steps}}}"), **inputs) == most


@pytest.mark.parametrize(
    "routes",
    [
        "{to: a}",
        '{when: "steps.a.red", to: a}',
        '{when: "cycle < cycles or steps.a.red", to: a}',
        '{when: "not cycle < 3", to: a}',
        '{when: "cycle > 3", to: a}',
        '{when: "cycle != 3", to: a}',
        '{when: "cycle in [1, 2]", to: a}',
        '{when: "cycle < 1e999", to: a}',
        '{when: "cycle < inputs.word", to: a}',
        '{when: "steps.b.visits < 3", to: a}',
        '{when: "steps.a.results.visits < 3", to: a}',
        '{when: "cycle < 3", to: a}, {to: a}',
        '{when: "cycle >= 3 and steps.a.red", end: late}, {to: a}',
        '{when: "cycle < 3", end: early}, {to: a}',
        '{when: "cycle >= 3 > inputs.most", end: late}, {to: a}',
        '{when: "cycle == 2.5", end: late}, {to: a}',
        '{when: "cycle == 0", end: late}, {to: a}',
        '{when: "steps.a.red", to: a}, {when: "cycle >= 3", end: late}',
    ],
)
def test_what_does_not_limit_them(routes: str) -> None:
    with pytest.raises(DefinitionError, match=r"^flows/x\.yaml: steps\[0\]: can loop forever: a -> a$"):
        visits_of(steps_of(a=routes, b="{end: done}"))


def test_input_without_a_value_limits_once_it_is_given() -> None:
    flow = steps_of(a='{when: "cycle < inputs.asked", to: a}')
    error = raised(DefinitionError, visits_of, flow)
    assert str(error) == (
        "flows/x.yaml: steps[0]: can loop forever: a -> a; the value of inputs.asked is not known before the run"
    )
    assert "default" in error.hint
    assert visits_of(flow, asked=8) == {"a": 8}


@pytest.mark.parametrize("first", ["4", "'{{ inputs.most }}'", "'{{ 4 }}'"])
def test_variable_that_no_step_sets_limits_like_its_value(first: str) -> None:
    text = "inputs: {most: 4}\nvars: {most: %s}\nsteps: [{check: a, %s next: [{when: 'cycle < vars.most', to: a}]}]"
    assert visits_of(flow_of(text % (first, ""))) == {"a": 4}
    with pytest.raises(DefinitionError, match=r"can loop forever: a -> a; vars\.most cannot bound a loop: use visits$"):
        visits_of(flow_of(text % (first, "set: {most: 9},")))


def test_counter_in_a_variable_does_not_bound_a_loop() -> None:
    text = """
vars: {tries: 0, other: 0}
steps:
  - {check: a, set: {tries: "{{ vars.tries + 1 }}", other: 1}, next: [{when: "vars.tries < 3", to: a}]}
  - {check: b, next: [{when: "vars.other", to: a}, {when: "vars.other > 1", end: late}]}
"""
    error = raised(DefinitionError, visits_of, flow_of(text))
    assert "a -> a; vars.tries cannot bound a loop: use visits" in str(error)
    assert 'when: "cycle < cycles"' in error.hint


def test_way_back_is_limited_wherever_it_comes_from() -> None:
    closed = steps_of(a="", b='{when: "cycle >= cycles", end: late, exit: 1}, {to: a}')
    assert visits_of(closed) == {"a": 3, "b": 4}
    skipping = steps_of(a='{when: "steps.a.red", to: c}', b="", c='{when: "cycle < 2", to: a}')
    assert visits_of(skipping) == {"a": 2, "b": 3, "c": 3}


def test_nested_loop_restarts_in_every_round() -> None:
    nested = steps_of(a="", b='{when: "steps.b.visits < 5", to: b}', c='{when: "cycle < cycles", to: a}')
    assert visits_of(nested) == {"a": 3, "b": 5 + 3, "c": 1 + 3 + 8}


def test_unbounded_loop_is_named_and_the_hint_fixes_it() -> None:
    text = "steps: [{id: prepare, check: tests}, {id: edit-it, check: tests}, {id: try, check: tests, next: [%s]}]"
    error = raised(DefinitionError, visits_of, flow_of(text % "{to: edit-it}"))
    assert str(error) == "flows/x.yaml: steps[1]: can loop forever: edit-it -> try -> edit-it"
    condition = error.hint.split('"')[1]
    assert visits_of(flow_of(text % f'{{when: "{condition}", to: edit-it}}'))["edit-it"] == 5
    assert "limits: {visits: N}" in error.hint
    assert '"cycle < cycles"' in raised(DefinitionError, visits_of, steps_of(a="", b="{to: a}")).hint


def test_only_the_loop_without_a_limit_is_named() -> None:
    flow = steps_of(a='{when: "cycle < 3", to: a}', b="", c='{when: "steps.c.red", to: b}')
    with pytest.raises(DefinitionError, match=r"can loop forever: b -> c -> b$"):
        visits_of(flow)


def walk(flow: FlowSpec, most: dict[str, int], chance: Random) -> None:
    """Follow the flow to its end, each output decided by ``chance``, and never beyond ``most``."""
    state = new_state(flow, "goal", {"most": 2}, 3)
    move: object = GoTo(flow.steps[0])
    while isinstance(move, GoTo):
        assert state.enter(move.step.id) <= most[move.step.id]
        state.leave(move.step.id, any_result(chance))
        move = after(flow, move.step, state)


@settings(max_examples=settings().max_examples // 2)
@given(flow=FLOWS, chance=st.integers().map(Random))
def test_no_run_visits_a_step_more_often_than_the_bound(flow: FlowSpec, chance: Random) -> None:
    try:
        most = visits_of(flow)
    except DefinitionError as error:
        loop = str(error).rsplit("loop forever: ", 1)[1].split(" -> ")
        assert loop[0] == loop[-1]
        assert all(leads_to(flow, *pair) for pair in pairwise(loop))
    else:
        for _ in range(5):
            walk(flow, most, chance)


def leads_to(flow: FlowSpec, origin: str, target: str) -> bool:
    following = (origin, target) in pairwise(step.id for step in flow.steps)
    return following or target in [route.to for route in flow.step(origin).next]


@settings(max_examples=settings().max_examples // 2)
@given(flow=FLOWS, limit=st.integers(1, 4))
def test_flow_whose_steps_all_have_limits_is_bounded_by_them(flow: FlowSpec, limit: int) -> None:
    steps = tuple(step.model_copy(update={"limits": StepLimits(visits=limit)}) for step in flow.steps)
    most = visits_of(flow.model_copy(update={"steps": steps}))
    assert all(times <= limit for times in most.values())
