from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, load_flow, packaged_roles
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import GoTo, WorstCase, after, new_state, worst_case
from codex_multi_role.flow.bounds import most_visits

CATALOG = """
version: 1
roles:
  - {name: test_planner, prompt_text: Plan., limits: {turn_seconds: 100}}
  - {name: test_developer, prompt_text: Develop., limits: {turn_seconds: 10}}
  - {name: reader, prompt_text: Read., limits: {turn_seconds: 1}}
"""
TEST_GENERATION = """
inputs: {target: {type: path}, max_iterations: 5, target_coverage: 100}
steps:
  - id: plan
    ask: test_planner
  - id: develop
    ask: test_developer
  - id: execute
    check: coverage
    with: {target: "{{ inputs.target }}"}
    next:
      - {when: "steps.execute.visits >= inputs.max_iterations", end: timeout, exit: 1}
      - {when: "steps.execute.crashed or steps.execute.failed", to: develop}
      - {when: "steps.execute.coverage < inputs.target_coverage", to: plan}
      - {end: success}
"""
STEP_IDS = ("a", "b", "c", "d")


@pytest.fixture
def catalog(tmp_path: Path) -> RoleSpecCatalog:
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    return RoleSpecCatalog.load(tmp_path)


def flow_of(text: str) -> FlowSpec:
    return FlowSpec.model_validate({"name": "x", "source": Path("flows/x.yaml")} | yaml.safe_load(text))


def steps_of(**routes: str) -> FlowSpec:
    """A flow of checks: ``steps_of(a="", b='{when: "…", to: a}')``."""
    steps = [f"{{id: '{name}', check: tests, next: [{each}]}}" for name, each in routes.items()]
    return flow_of(
        f"{{inputs: {{most: 4, half: 2.5, word: x, asked: {{type: integer}}}}, steps: [{', '.join(steps)}]}}"
    )


def visits_of(flow: FlowSpec, **inputs: object) -> dict[str, int]:
    return most_visits(flow, cycles=3, inputs=inputs)


@pytest.mark.parametrize("cycles", [1, 3, 12])
def test_the_shipped_flow_asks_every_role_once_a_cycle(cycles: int) -> None:
    catalog = RoleSpecCatalog.load(packaged_roles())
    worst = worst_case(load_flow("cycles", None, catalog), catalog, cycles=cycles, repair_attempts=2)
    assert (worst.turns, worst.repair_turns, worst.processes) == (4 * cycles, 8 * cycles, 4)
    assert worst.seconds == 3 * cycles * sum(role.limits.turn_seconds for role in catalog.roles)


def test_a_loop_ended_from_within_allows_its_other_steps_one_visit_more(catalog: RoleSpecCatalog) -> None:
    flow = flow_of(TEST_GENERATION)
    assert visits_of(flow) == {"plan": 6, "develop": 6, "execute": 5}
    assert worst_case(flow, catalog, cycles=1, repair_attempts=1) == WorstCase(12, 12, 2, 1320.0)


def test_an_input_that_is_given_counts_instead_of_its_default() -> None:
    assert visits_of(flow_of(TEST_GENERATION), max_iterations=2) == {"plan": 3, "develop": 3, "execute": 2}


def test_a_flow_without_loops_visits_each_step_once(catalog: RoleSpecCatalog) -> None:
    flow = flow_of("""steps:
      - {id: first, ask: "*", next: [{when: "steps.first.x", to: last}]}
      - {ask: reader, max_visits: 7}
      - {id: last, ask: reader}
    """)
    assert worst_case(flow, catalog, cycles=9, repair_attempts=0) == WorstCase(5, 0, 3, 113.0)


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
    assert visits_of(steps_of(a=routes, b="{end: done}")) == {"a": most, "b": 1}


@pytest.mark.parametrize(
    "routes",
    [
        "{to: a}",
        '{when: "steps.a.red", to: a}',
        '{when: "cycle < cycles or steps.a.red", to: a}',
        '{when: "not cycle < 3", to: a}',
        '{when: "cycle > 3", to: a}',
        '{when: "3 < cycle", to: a}',
        '{when: "cycle != 3", to: a}',
        '{when: "cycle in [1, 2]", to: a}',
        '{when: "cycle < 1e999", to: a}',
        '{when: "cycle < inputs.word", to: a}',
        '{when: "cycle < inputs.asked", to: a}',
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
    with pytest.raises(DefinitionError, match=r"^flows/x\.yaml: steps: nothing bounds the loop a -> a$"):
        visits_of(steps_of(a=routes, b="{end: done}"))


def test_an_input_without_a_default_limits_once_it_is_given() -> None:
    assert visits_of(steps_of(a='{when: "cycle < inputs.asked", to: a}'), asked=8) == {"a": 8}


def test_the_way_back_is_limited_wherever_it_comes_from() -> None:
    closed = steps_of(a="", b='{when: "cycle >= cycles", end: late, exit: 1}, {to: a}')
    assert visits_of(closed) == {"a": 3, "b": 4}
    skipping = steps_of(a='{when: "steps.a.red", to: c}', b="", c='{when: "cycle < 2", to: a}')
    assert visits_of(skipping) == {"a": 2, "b": 3, "c": 3}


def test_a_loop_within_a_loop_begins_anew_with_every_round() -> None:
    nested = steps_of(a="", b='{when: "steps.b.visits < 5", to: b}', c='{when: "cycle < cycles", to: a}')
    assert visits_of(nested) == {"a": 3, "b": 5 + 3, "c": 1 + 3 + 8}


def test_an_unbounded_loop_is_named_and_the_hint_mends_it() -> None:
    text = "steps: [{id: prepare, check: tests}, {id: edit-it, check: tests}, {id: try, check: tests, next: [%s]}]"
    with pytest.raises(DefinitionError) as caught:
        visits_of(flow_of(text % "{to: edit-it}"))
    assert str(caught.value) == "flows/x.yaml: steps: nothing bounds the loop edit-it -> try -> edit-it"
    condition = caught.value.hint.split('"')[1]
    assert visits_of(flow_of(text % f'{{when: "{condition}", to: edit-it}}'))["edit-it"] == 5
    assert "max_visits" in caught.value.hint
    with pytest.raises(DefinitionError) as caught:
        visits_of(steps_of(a="", b="{to: a}"))
    assert '"cycle < cycles"' in caught.value.hint


def test_only_the_loop_without_a_limit_is_named() -> None:
    flow = steps_of(a='{when: "cycle < 3", to: a}', b="", c='{when: "steps.c.red", to: b}')
    with pytest.raises(DefinitionError, match=r"the loop b -> c -> b$"):
        visits_of(flow)


def conditions(step_id: str) -> st.SearchStrategy[str]:
    flags = st.sampled_from([f"steps.{step_id}.red", f"steps.{step_id}.green"])
    counts = st.sampled_from(["cycle", *(f"steps.{each}.visits" for each in STEP_IDS[:2])])
    numbers = st.sampled_from(["0", "1", "2", "3", "1.5", "cycles", "inputs.most"])
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    compared = st.tuples(counts, signs, numbers) | st.tuples(numbers, signs, counts)
    return st.recursive(
        flags | compared.map(" ".join),
        lambda parts: (
            st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(lambda each: f"({' '.join(each)})")
            | parts.map(lambda each: f"not {each}")
        ),
        max_leaves=3,
    )


@st.composite
def flows(draw: st.DrawFn) -> FlowSpec:
    """Small flows of checks that leave ``red`` and ``green``; many have loops, not all of them bounded."""
    ids = STEP_IDS[: draw(st.integers(2, len(STEP_IDS)))]
    ways = st.sampled_from([{"to": step_id} for step_id in ids] * 2 + [{"end": "done"}])
    steps: list[dict[str, Any]] = []
    for step_id in ids:
        routes = draw(st.lists(st.tuples(conditions(step_id), ways), max_size=3))
        last = draw(st.lists(ways, max_size=1))
        limit = draw(st.none() | st.integers(1, 3))
        entries = [{"when": when, **way} for when, way in routes] + last
        steps.append({"id": step_id, "check": "tests", "next": entries, "max_visits": limit})
    return FlowSpec.model_validate({"name": "x", "inputs": {"most": 2}, "steps": steps})


def walk(flow: FlowSpec, most: dict[str, int], chance: Random) -> None:
    """Follow the flow to its end, each output decided by ``chance``, and never beyond ``most``."""
    state = new_state("goal", {"most": 2}, 2, [step.id for step in flow.steps])
    move: object = GoTo(flow.steps[0])
    while isinstance(move, GoTo):
        assert state.enter(move.step.id) <= most[move.step.id]
        state.leave(move.step.id, {"red": chance.random() < 0.5, "green": chance.random() < 0.5})
        move = after(flow, move.step, state)


@given(flow=flows(), chance=st.randoms(use_true_random=False))
def test_no_run_visits_a_step_more_often_than_the_bound(flow: FlowSpec, chance: Random) -> None:
    try:
        most = most_visits(flow, cycles=2)
    except DefinitionError as error:
        loop = str(error).rsplit("loop ", 1)[1].split(" -> ")
        assert loop[0] == loop[-1]
        assert all(leads_to(flow, *pair) for pair in pairwise(loop))
    else:
        for _ in range(5):
            walk(flow, most, chance)


def leads_to(flow: FlowSpec, origin: str, target: str) -> bool:
    following = STEP_IDS[STEP_IDS.index(origin) + 1 :][:1] == (target,)
    return following or target in [route.to for route in flow.step(origin).next]


@given(flow=flows(), limit=st.integers(1, 4))
def test_a_flow_whose_steps_all_have_max_visits_is_bounded_by_them(flow: FlowSpec, limit: int) -> None:
    steps = tuple(step.model_copy(update={"max_visits": limit}) for step in flow.steps)
    most = most_visits(flow.model_copy(update={"steps": steps}), cycles=2)
    assert all(1 <= times <= limit for times in most.values())
