from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, load_flows, packaged_roles
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import WorstCase, walk_bound, worst_case

from .flows import CATALOG, flows_of
from .generated import flows_that_call
from .simulation import Simulation
from .test_visits import TEST_GENERATION

TOPIC = """
inputs: {topic: , most: 2}
steps:
  - {ask: reader, next: [{when: "steps.reader.visits < inputs.most", to: reader}]}
  - id: deeper
    call: topic
    max_depth: 2
    for_each: "{{ steps.reader.new }}"
    max_items: 3
    with: {topic: "{{ item }}"}
"""


def worst(flows: Mapping[str, FlowSpec], *, repairs: int = 0, cycles: int = 3, **inputs: Any) -> WorstCase:
    """Of the first one of ``flows``."""
    name = next(iter(flows))
    return worst_case(flows, name, CATALOG, cycles=cycles, repair_attempts=repairs, inputs=inputs)


def worst_of(steps: str, **inputs: Any) -> WorstCase:
    """Of a flow with inputs of its own that calls itself by no other name than ``x``."""
    return worst(flows_of(x=f"{{inputs: {{most: 4, asked: {{type: integer}}}}, steps: [{steps}]}}"), **inputs)


@pytest.mark.parametrize("cycles", [1, 3, 12])
def test_the_shipped_flow_asks_every_role_once_a_cycle(cycles: int) -> None:
    catalog = RoleSpecCatalog.load(packaged_roles())
    flows = load_flows("cycles", None, catalog)
    most = worst_case(flows, "cycles", catalog, cycles=cycles, repair_attempts=2)
    assert (most.turns, most.repair_turns, most.processes) == (4 * cycles, 8 * cycles, 4)
    assert most.seconds == 3 * cycles * sum(role.limits.turn_seconds for role in catalog.roles)
    assert most.records == cycles * (4 * 16 + 2)


def test_repairs_take_as_long_as_turns() -> None:
    most = worst(flows_of(x=TEST_GENERATION), repairs=1, target="src")
    assert most == WorstCase(12, 12, 2, 6 * (100 + 10) * 2, 12 * (16 + 2) + 5 * (1 + 2))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{ask: planner}", WorstCase(1, 0, 1, 100, 18)),
        ("{id: all, ask: '*'}", WorstCase(3, 0, 3, 111, 50)),
        ("{ask: planner, limits: {turn_seconds: 7}}", WorstCase(1, 0, 1, 7, 18)),
        ("{ask: planner, limits: {idle_seconds: 7}}", WorstCase(1, 0, 1, 100, 18)),
        ("{ask: reader, isolate: worktree}", WorstCase(1, 0, 1, 1, 16 + 1 + 2)),
        ("{ask: reader, isolate: worktree, for_each: [1, 2, 3]}", WorstCase(3, 0, 1, 3, 3 * (16 + 1) + 2)),
        ("{check: c}", WorstCase(0, 0, 0, 0, 3)),
        ("{id: r, review: Well}", WorstCase(0, 0, 0, 0, 4)),
        ("{id: r, review: Well, time_limit_seconds: 60, default: reject}", WorstCase(0, 0, 0, 60, 4)),
        ("{ask: reader, retry: {attempts: 4, backoff_seconds: 2}}", WorstCase(4, 0, 1, 4 + 14, 4 * 16 + 3 + 2)),
        ("{check: c, retry: {attempts: 2, backoff_seconds: 5}}", WorstCase(0, 0, 0, 5, 2 + 1 + 2)),
        ("{ask: reader, for_each: [1, 2, 3]}", WorstCase(3, 0, 1, 3, 3 * 16 + 2)),
        ("{ask: reader, for_each: []}", WorstCase(0, 0, 1, 0, 2)),
        ("{ask: reader, for_each: '{{ goal }}', max_items: 32, concurrency: 8}", WorstCase(32, 0, 8, 4, 32 * 16 + 2)),
        ("{ask: reader, for_each: [1, 2, 3], concurrency: 2}", WorstCase(3, 0, 2, 2, 50)),
        ("{ask: reader, for_each: [1, 2, 3], concurrency: 64}", WorstCase(3, 0, 3, 1, 50)),
        ("{ask: reader, for_each: [1, 2, 3], concurrency: 2, retry: {attempts: 2}}", WorstCase(6, 0, 2, 6, 3 * 33 + 2)),
    ],
)
def test_what_a_step_comes_to(step: str, expected: WorstCase) -> None:
    assert worst_of(step) == expected


@pytest.mark.parametrize(
    ("concurrency", "inputs", "processes", "seconds"),
    [
        ("{{ inputs.most }}", {}, 4, 25),
        ("{{ inputs.most }}", {"most": 50}, 50, 2),
        ("{{ inputs.asked }}", {"asked": 10}, 10, 10),
        ("{{ inputs.asked }}", {}, 64, 100),
        ("{{ inputs.most + 1 }}", {}, 64, 100),
        ("{{ steps.reader.visits }}", {}, 64, 100),
    ],
)
def test_a_concurrency_that_is_not_known_counts_as_the_worst(
    concurrency: str, inputs: dict[str, int], processes: int, seconds: int
) -> None:
    most = worst_of(
        f"{{ask: reader, for_each: '{{{{ goal }}}}', max_items: 100, concurrency: '{concurrency}'}}", **inputs
    )
    assert (most.processes, most.seconds) == (processes, seconds)


@pytest.mark.parametrize("most", [0, 65, -1, True, 2.5, "3"])
def test_a_concurrency_out_of_range_is_found_before_the_run(most: object) -> None:
    with pytest.raises(DefinitionError) as caught:
        worst_of("{check: c}, {ask: reader, for_each: [1], concurrency: '{{ inputs.most }}'}", most=most)
    expected = f"flows/x.yaml: steps[1].concurrency: must be a number from 1 to 64, not {most!r}"
    assert str(caught.value) == expected


def test_the_walks_own_processes_come_on_top_of_those_of_its_items() -> None:
    assert worst_of("{ask: reader}, {id: many, ask: reader, for_each: [1, 2], concurrency: 2}").processes == 3
    assert worst_of("{ask: planner}, {id: many, ask: reader, for_each: [1, 2], concurrency: 2}").processes == 3
    two = (
        "{ask: reader, for_each: [1, 2], concurrency: 2}, {id: more, ask: reader, for_each: [1, 2, 3], concurrency: 3}"
    )
    assert worst_of(two).processes == 3


def test_a_call_is_a_step_with_all_that_the_called_flow_comes_to() -> None:
    flows = flows_of(main="steps: [{ask: planner}, {call: sub}]", sub="steps: [{ask: reader}, {id: all, ask: '*'}]")
    assert worst(flows) == WorstCase(5, 0, 3, 100 + 1 + 111, 18 + (18 + 50) + 2)
    fanned = flows_of(main="steps: [{call: sub, for_each: [1, 2, 3], concurrency: 2}]", sub="steps: [{ask: reader}]")
    assert worst(fanned) == WorstCase(3, 0, 2, 2, 3 * 18 + 2)
    nested = flows_of(
        main="steps: [{call: sub, for_each: [1, 2, 3], concurrency: 2}]",
        sub="steps: [{ask: planner}, {ask: reader, for_each: [1, 2], concurrency: 2, retry: {attempts: 2}}]",
    )
    assert worst(nested) == WorstCase(3 * 5, 0, 2 + 4, 2 * (100 + 2 + 1), 3 * (18 + 2 * 33 + 2) + 2)


@pytest.mark.parametrize(
    ("given", "turns"),
    [
        ("{}", 2),
        ("{most: 5}", 5),
        ("{most: '7'}", 7),
        ("{most: '{{ inputs.rounds }}'}", 4),
        ("{most: '{{ vars.rounds }}'}", 4),
        ("{most: '{{ cycles }}'}", 3),
        ("{most: '{{ 6 }}'}", 6),
    ],
)
def test_a_called_flow_is_bounded_by_what_is_known_of_its_inputs(given: str, turns: int) -> None:
    main = "inputs: {rounds: 4}\nvars: {rounds: '{{ inputs.rounds }}'}\nsteps: [{call: sub, with: %s}]"
    sub = "{inputs: {most: 2}, steps: [{ask: reader, next: [{when: 'cycle < inputs.most', to: reader}]}]}"
    flows = flows_of(main=main % given, sub=sub)
    assert worst(flows).turns == turns


@pytest.mark.parametrize(
    "value", ["{{ inputs.rounds + 1 }}", "{{ inputs.asked }}", "{{ item }}", "{{ cycle }}", "{{ vars.set }}"]
)
def test_a_called_flow_whose_bound_is_not_known_is_unbounded(value: str) -> None:
    main = """
inputs: {rounds: 4, asked: {type: integer}}
vars: {set: 3}
steps:
  - {check: c, set: {set: 4}}
  - {call: sub, for_each: [1], with: {most: "%s"}}
"""
    sub = "{inputs: {most: 2}, steps: [{ask: reader, next: [{when: 'cycle < inputs.most', to: reader}]}]}"
    with pytest.raises(DefinitionError) as caught:
        worst(flows_of(main=main % value, sub=sub))
    assert str(caught.value) == (
        "flows/sub.yaml: steps: nothing bounds the loop reader -> reader: the value of inputs.most is not known before "
        "the run (called at flows/main.yaml: steps[1])"
    )


def test_an_input_of_another_type_is_found_before_the_run() -> None:
    flows = flows_of(
        main="{inputs: {word: x}, steps: [{call: sub, with: {most: '{{ inputs.word }}'}}]}",
        sub="{inputs: {most: 2}, steps: [{ask: reader}]}",
    )
    with pytest.raises(DefinitionError, match=r"^flows/main.yaml: steps\[0\]\.with\.most: .*not of type integer: 'x'"):
        worst(flows)
    assert worst(flows, word="3").turns == 1


def test_recursion_goes_as_deep_as_its_limit() -> None:
    walks = 1 + 3 + 3 * 3
    most = worst(flows_of(topic=TOPIC), topic="a")
    records = 36 + 2
    assert most == WorstCase(2 * walks, 0, 1 + 1 + 1, 2 * walks, records + 3 * (records + 3 * records))
    called = flows_of(main="{steps: [{call: topic, with: {topic: a}}]}", topic=TOPIC)
    assert worst(called).turns == most.turns
    assert worst(called).records == most.records + 2


def test_recursion_through_another_flow_counts_the_called_one() -> None:
    flows = flows_of(
        ask="steps: [{ask: reader}, {call: dig, max_depth: 3}]",
        dig="steps: [{ask: planner}, {call: ask, max_depth: 1}]",
    )
    assert worst(flows).turns == 4
    assert worst({"dig": flows["dig"], "ask": flows["ask"]}).turns == 5


def test_each_call_has_the_bound_of_the_walk_it_starts() -> None:
    bound = walk_bound(flows_of(topic=TOPIC), "topic", CATALOG, cycles=1, repair_attempts=0, inputs={"topic": "a"})
    depths = [bound]
    while "deeper" in depths[-1].called:
        depths.append(depths[-1].called["deeper"])
    assert [each.effort.turns for each in depths] == [26, 8, 2]
    assert [each.unit_records["deeper"] for each in depths] == [each.effort.records for each in depths[1:]] + [0]
    assert {each.unit_records["reader"] for each in depths} == {16}


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ({"a": "{call: a}"}, "flows/a.yaml: steps[0]: the calls go too deep to be counted"),
        ({"a": "{call: b, max_depth: 50}", "b": "{call: c, max_depth: 50}", "c": "{call: a}"}, "too deep"),
        ({"a": "{ask: reader}, {call: a, max_depth: 30, for_each: [1, 2, 3]}"}, "flows/a.yaml: steps: a run may need"),
        ({"a": "{check: c, for_each: '{{ goal }}', max_items: 100000}, {call: a, max_depth: 3, for_each: '{{ goal }}',"
               " max_items: 1000}"}, "more than 1,000,000,000,000 recorded steps"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_as_good_as_unbounded(flows: dict[str, str], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        worst(flows_of(**{name: f"steps: [{steps}]" for name, steps in flows.items()}))
    assert message in str(caught.value)
    assert "max_depth" in caught.value.hint


def test_many_ways_to_be_called_are_counted_quickly() -> None:
    names = [f"f{number}" for number in range(40)]
    calls = {
        name: f"steps: [{{ask: reader}}, {{call: {below}}}, {{id: again, call: {below}}}]"
        for name, below in zip(names, [*names[1:], "last"], strict=True)
    }
    with pytest.raises(DefinitionError, match="recorded steps"):
        worst(flows_of(**calls, last="steps: [{ask: reader}]"))
    few = {name: calls[name] for name in names[-20:]}
    assert worst(flows_of(**few, last="steps: [{ask: reader}]")).turns == 2**21 - 1


@settings(deadline=None)
@given(flows=flows_that_call(), repairs=st.integers(0, 2), chance=st.integers().map(Random))
def test_no_run_exceeds_its_worst_case(flows: dict[str, FlowSpec], repairs: int, chance: Random) -> None:
    try:
        bound = walk_bound(flows, "main", CATALOG, cycles=2, repair_attempts=repairs)
    except DefinitionError as error:
        unbounded = str(error)
    else:
        unbounded = ""
        most = worst_case(flows, "main", CATALOG, cycles=2, repair_attempts=repairs)
        for _ in range(3):
            came_to = Simulation(flows, 2, repairs, chance).run("main", bound)
            assert all(had <= may for had, may in zip(astuple(came_to), astuple(most), strict=True)), (came_to, most)
    assert not unbounded or "nothing bounds the loop" in unbounded
