from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow import Terms, WorstCase, walk_bound, worst_case
from codex_multi_role.reading.shipped import packaged_roles
from tests.support.catalogs import load_flows, raised
from tests.support.flow_simulation import Simulation
from tests.support.flows import CATALOG, CHECK_SECONDS, ROLES, TEST_GENERATION, flows_of, specs_of, terms_of
from tests.support.random_flows import BOUNDED, STRAIGHT, Record, flows

ROUNDING = 1e-6
TOPIC = """
inputs: {topic: , most: 2}
steps:
  - {ask: reader, next: [{when: "steps.reader.visits < inputs.most", to: reader}]}
  - id: deeper
    call: topic
    limits: {depth: 2}
    for_each: {items: "{{ steps.reader.new }}", max_items: 3}
    with: {topic: "{{ item }}"}
"""


PLANNER, DEVELOPER, READER = (3 * seconds + 2 * 60 for seconds in ROLES.values())
"""The seconds of an ask: each of three attempts times out, and the pauses between them."""


def worst(flows: Mapping[str, FlowSpec], *, repairs: int = 0, cycles: int = 3, **inputs: Any) -> WorstCase:
    """Of the first one of ``flows``."""
    return worst_case(flows, next(iter(flows)), CATALOG, terms_of(cycles, repairs), inputs)


def worst_of(steps: str, **inputs: Any) -> WorstCase:
    """Of a flow with inputs of its own that calls itself by no other name than ``x``."""
    return worst(flows_of(x=f"{{inputs: {{most: 4, asked: {{type: integer}}}}, steps: [{steps}]}}"), **inputs)


def shape(most: WorstCase) -> tuple[int, int, float, int]:
    """Turns, processes, seconds and records."""
    return most.turns, most.processes, most.seconds, most.records


@pytest.mark.parametrize("cycles", [1, 3, 12])
def test_shipped_flow_asks_every_role_once_per_cycle(cycles: int) -> None:
    catalog = RoleSpecCatalog.load(packaged_roles())
    flows = load_flows("cycles", None, catalog)
    most = worst_case(flows, "cycles", catalog, terms_of(cycles, repairs=2, tests=300))
    assert (most.turns, most.repair_turns, most.processes) == (4 * cycles, 8 * cycles, 4)
    assert most.prompts == 3 * (4 + 8) * cycles
    prompts = 3 * sum(3 * role.limits.turn_seconds + 2 * 60 for role in catalog.roles)
    assert most.seconds == cycles * (prompts + 300 * sum(role.may_change_workspace for role in catalog.roles))
    assert most.records == cycles * (4 * 16 + 2)


@pytest.mark.parametrize(
    ("steps", "tests", "times"),
    [
        ("{ask: developer}, {id: again, ask: developer}", 60, 1),
        ("{ask: developer}, {id: again, ask: developer, isolate: worktree}", 60, 2),
        ("{ask: developer}, {check: tests}", 0, 1),
        ("{ask: developer}", 0, 0),
        ("{ask: reader}, {check: tests}", 60, 0),
    ],
)
def test_baseline_takes_its_time_once_for_each_kind_of_folder(steps: str, tests: float, times: int) -> None:
    flows, terms = flows_of(x=f"steps: [{steps}]"), terms_of(tests=tests)
    without, most = (
        worst_case(flows, "x", CATALOG, replace(terms, baseline_seconds=seconds)).seconds for seconds in (0, 7)
    )
    assert most == without + 7 * times


def test_check_takes_as_long_as_declared_for_known_options() -> None:
    checks = (
        "{check: c}, {id: d, check: c, with: {seconds: 2}}, {id: e, check: c, with: {seconds: '{{ inputs.most }}'}}"
    )
    assert worst_of(checks).seconds == CHECK_SECONDS + 2 + 4
    assert worst_of("{check: c, with: {seconds: '{{ inputs.most + 1 }}'}}").seconds == CHECK_SECONDS


def test_unknown_check_is_found_before_run() -> None:
    def none(name: str, _: object) -> float:
        raise UsageError(f'unknown check "{name}"; did you mean "tests"?', "Known: tests.")

    with pytest.raises(DefinitionError, match=r'^flows/x.yaml: steps\[1\]: check: unknown check "test"') as caught:
        worst_case(flows_of(x="steps: [{ask: reader}, {check: test}]"), "x", CATALOG, Terms(1, 0, none, 0))
    assert caught.value.hint == "Known: tests."


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{id: all, ask: '*'}", (3, 3, PLANNER + DEVELOPER + READER, 50)),
        ("{ask: planner, limits: {turn_seconds: 7}}", (1, 1, 3 * 7 + 2 * 60, 18)),
        ("{ask: planner, limits: {idle_seconds: 7}}", (1, 1, PLANNER, 18)),
        ("{ask: reader, isolate: worktree}", (1, 1, READER, 16 + 1 + 2)),
        ("{ask: reader, isolate: worktree, for_each: [1, 2, 3]}", (3, 1, 3 * READER, 3 * (16 + 1) + 2)),
        ("{ask: reader, for_each: []}", (0, 1, 0, 2)),
        (
            "{ask: reader, for_each: {items: '{{ goal }}', max_items: 32, concurrency: 8}}",
            (32, 8, 4 * READER, 32 * 16 + 2),
        ),
        ("{ask: reader, for_each: {items: [1, 2, 3], concurrency: 64}}", (3, 3, READER, 50)),
    ],
)  # fmt: skip
def test_what_a_step_comes_to(step: str, expected: tuple[int, int, float, int]) -> None:
    assert shape(worst_of(step)) == expected


@pytest.mark.parametrize(
    ("concurrency", "inputs", "processes", "seconds"),
    [
        ("{{ inputs.most }}", {}, 4, 25 * READER),
        ("{{ inputs.most }}", {"most": 50}, 50, 2 * READER),
        ("{{ inputs.asked }}", {"asked": 10}, 10, 10 * READER),
        ("{{ inputs.asked }}", {}, 64, 100 * READER),
        ("{{ inputs.most + 1 }}", {}, 64, 100 * READER),
        ("{{ steps.reader.visits }}", {}, 64, 100 * READER),
    ],
)
def test_concurrency_that_is_not_known_counts_as_the_worst(
    concurrency: str, inputs: dict[str, int], processes: int, seconds: float
) -> None:
    most = worst_of(
        f"{{ask: reader, for_each: {{items: '{{{{ goal }}}}', max_items: 100, concurrency: '{concurrency}'}}}}",
        **inputs,
    )
    assert (most.processes, most.seconds) == (processes, seconds)


@pytest.mark.parametrize("most", [0, 65, -1, True, 2.5, "3"])
def test_concurrency_out_of_range_is_found_before_the_run(most: object) -> None:
    with pytest.raises(DefinitionError) as caught:
        worst_of("{check: c}, {ask: reader, for_each: {items: [1], concurrency: '{{ inputs.most }}'}}", most=most)
    expected = f"flows/x.yaml: steps[1]: for_each.concurrency: must be a number from 1 to 64, not {most!r}"
    assert str(caught.value) == expected


def test_walks_own_processes_come_on_top_of_those_of_its_items() -> None:
    assert worst_of("{ask: reader}, {id: many, ask: reader, for_each: {items: [1, 2], concurrency: 2}}").processes == 3
    assert worst_of("{ask: planner}, {id: many, ask: reader, for_each: {items: [1, 2], concurrency: 2}}").processes == 3
    more = "{id: more, ask: reader, for_each: {items: [1, 2, 3], concurrency: 3}}"
    two = f"{{ask: reader, for_each: {{items: [1, 2], concurrency: 2}}}}, {more}"
    assert worst_of(two).processes == 3


def test_call_is_a_step_with_all_that_the_called_flow_comes_to() -> None:
    flows = flows_of(main="steps: [{ask: planner}, {call: sub}]", sub="steps: [{ask: reader}, {id: all, ask: '*'}]")
    seconds = PLANNER + READER + PLANNER + DEVELOPER + READER
    assert shape(worst(flows)) == (5, 3, seconds, 18 + (18 + 50) + 2)
    fanned = flows_of(
        main="steps: [{call: sub, for_each: {items: [1, 2, 3], concurrency: 2}}]", sub="steps: [{ask: reader}]"
    )
    assert shape(worst(fanned)) == (3, 2, 2 * READER, 3 * 18 + 2)
    nested = flows_of(
        main="steps: [{call: sub, for_each: {items: [1, 2, 3], concurrency: 2}}]",
        sub="steps: [{ask: planner}, {ask: reader, for_each: {items: [1, 2], concurrency: 2}, retry: {attempts: 2}}]",
    )
    seconds = 2 * (PLANNER + 2 * READER + 1)
    assert shape(worst(nested)) == (3 * 5, 2 + 4, seconds, 3 * (18 + 2 * 33 + 2) + 2)
    assert worst(nested).seconds_one_by_one == 3 * (PLANNER + 2 * (2 * READER + 1))


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
def test_called_flow_is_bounded_by_what_is_known_of_its_inputs(given: str, turns: int) -> None:
    main = "inputs: {rounds: 4}\nvars: {rounds: '{{ inputs.rounds }}'}\nsteps: [{call: sub, with: %s}]"
    sub = "{inputs: {most: 2}, steps: [{ask: reader, next: [{when: 'cycle < inputs.most', to: reader}]}]}"
    flows = flows_of(main=main % given, sub=sub)
    assert worst(flows).turns == turns


@pytest.mark.parametrize(("both", "turns", "processes"), [("false", 1, 1), ("true", 2, 2), ("'{{ goal }}'", 2, 2)])
def test_what_the_inputs_of_a_call_rule_out_is_not_counted(both: str, turns: int, processes: int) -> None:
    second = "{ask: reader}, {ask: planner}"
    main = f"steps: [{{call: sub, with: {{both: {both}}}}}]"
    sub = f"{{inputs: {{both: false}}, steps: [{second}]}}".replace(
        "{ask: reader}", "{ask: reader, next: [{when: 'not inputs.both', end: done}]}"
    )
    most = worst(flows_of(main=main, sub=sub))
    assert (most.turns, most.processes) == (turns, processes)


@pytest.mark.parametrize(
    "value", ["{{ inputs.rounds + 1 }}", "{{ inputs.asked }}", "{{ item }}", "{{ cycle }}", "{{ vars.set }}"]
)
def test_called_flow_whose_bound_is_not_known_is_unbounded(value: str) -> None:
    main = """
inputs: {rounds: 4, asked: {type: integer}}
vars: {set: 3}
steps:
  - {check: c, set: {set: 4}}
  - {call: sub, for_each: [1], with: {most: "%s"}}
"""
    sub = "{inputs: {most: 2}, steps: [{ask: reader, next: [{when: 'cycle < inputs.most', to: reader}]}]}"
    assert str(raised(DefinitionError, worst, flows_of(main=main % value, sub=sub))) == (
        "flows/sub.yaml: steps[0]: can loop forever: reader -> reader; the value of inputs.most is not known before "
        "the run (called at flows/main.yaml: steps[1])"
    )


def test_input_of_another_type_is_found_before_the_run() -> None:
    flows = flows_of(
        main="{inputs: {word: x}, steps: [{call: sub, with: {most: '{{ inputs.word }}'}}]}",
        sub="{inputs: {most: 2}, steps: [{ask: reader}]}",
    )
    with pytest.raises(DefinitionError, match=r"^flows/main.yaml: steps\[0\]: with\.most: .*not of type integer: 'x'"):
        worst(flows)
    assert worst(flows, word="3").turns == 1


def test_recursion_goes_as_deep_as_its_limit() -> None:
    walks = 1 + 3 + 3 * 3
    most = worst(flows_of(topic=TOPIC), topic="a")
    records = 36 + 2
    assert shape(most) == (2 * walks, 1 + 1 + 1, 2 * walks * READER, records + 3 * (records + 3 * records))
    called = flows_of(main="{steps: [{call: topic, with: {topic: a}}]}", topic=TOPIC)
    assert worst(called).turns == most.turns
    assert worst(called).records == most.records + 2


def test_recursion_through_another_flow_counts_the_called_one() -> None:
    flows = flows_of(
        ask="steps: [{ask: reader}, {call: dig, limits: {depth: 3}}]",
        dig="steps: [{ask: planner}, {call: ask, limits: {depth: 1}}]",
    )
    assert worst(flows).turns == 4
    assert worst({"dig": flows["dig"], "ask": flows["ask"]}).turns == 5


def test_each_call_has_the_bound_of_the_walk_it_starts() -> None:
    bound = walk_bound(flows_of(topic=TOPIC), "topic", CATALOG, terms_of(1), {"topic": "a"})
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
        ({"a": "{call: b, limits: {depth: 50}}", "b": "{call: c, limits: {depth: 50}}", "c": "{call: a}"}, "too deep"),
        ({"a": "{ask: reader}, {call: a, limits: {depth: 30}, for_each: [1, 2, 3]}"},
         "flows/a.yaml: steps[1]: an item"),
        ({"a": "{check: c, for_each: {items: '{{ goal }}', max_items: 100000}, limits: {visits: 10000000},"
               " next: [{to: c}]}"},
         "flows/a.yaml: steps: a run may need more than 1,000,000,000,000 recorded steps"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_as_good_as_unbounded(flows: dict[str, str], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        worst(flows_of(**{name: f"steps: [{steps}]" for name, steps in flows.items()}))
    assert message in str(caught.value)
    assert "limits." in caught.value.hint


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


def test_item_that_may_record_too_much_is_found_before_the_run() -> None:
    again = "next: [{when: 'cycle < cycles', to: reader}]"
    flows = flows_of(main="steps: [{call: sub, for_each: [1]}]", sub=f"steps: [{{ask: reader, {again}}}]")
    assert worst(flows, cycles=1111).turns == 1111
    error = raised(DefinitionError, worst, flows, cycles=1112)
    message = "flows/main.yaml: steps[0]: an item may record 20,016 steps, 20,000 are the most"
    assert str(error) == message


def test_limit_of_turns_counts_every_prompt() -> None:
    most = worst(flows_of(x=TEST_GENERATION), repairs=1, target="src")
    assert (most.turns, most.repair_turns, most.prompts) == (12, 12, 72)
    limited = most.within(turns=10)
    assert (limited.turns, limited.repair_turns, limited.prompts) == (10, 9, 10)
    assert most.within(turns=100) == most.within() == most


@pytest.mark.parametrize(
    ("processes", "seconds"), [(1, 12 * READER), (2, 8 * READER), (5, 4.4 * READER), (6, 2 * READER), (7, 2 * READER)]
)
def test_fewer_processes_take_more_time(processes: int, seconds: float) -> None:
    most = worst_of("{ask: reader, for_each: {items: '{{ goal }}', max_items: 12, concurrency: 6}}")
    limited = most.within(processes=processes)
    assert limited.processes == min(processes, 6)
    assert limited.seconds == pytest.approx(seconds)


def stepping(*max_steps: int) -> RoleSpecCatalog:
    """`CATALOG` with turns that may be continued so often, role by role."""
    roles = [role.model_copy(update={"max_steps": most}) for role, most in zip(CATALOG.roles, max_steps, strict=True)]
    return replace(CATALOG, roles=tuple(roles))


def keeps_to(came_to: WorstCase, most: WorstCase) -> bool:
    return all(had <= may + ROUNDING for had, may in zip(astuple(came_to), astuple(most), strict=True))


@given(
    drawn=flows(STRAIGHT),
    repairs=st.integers(0, 2),
    tests=st.sampled_from([0.0, 20.0]),
    max_steps=st.tuples(*[st.integers(0, 2)] * len(ROLES)),
)
def test_straight_flow_in_which_all_goes_wrong_comes_to_its_worst_case(
    drawn: list[Record], repairs: int, tests: float, max_steps: tuple[int, ...]
) -> None:
    """Except for processes: those of a walk and those of its items count together."""
    specs, terms, catalog = specs_of(drawn), terms_of(2, repairs, tests), stepping(*max_steps)
    bound, most = walk_bound(specs, "own", catalog, terms), worst_case(specs, "own", catalog, terms)
    came_to = Simulation(specs, terms, Random(0), bad_luck=1.0, catalog=catalog).run("own", bound)
    assert astuple(replace(came_to, processes=most.processes)) == pytest.approx(astuple(most))


@given(
    drawn=flows(BOUNDED),
    repairs=st.integers(0, 2),
    tests=st.sampled_from([0.0, 20.0]),
    processes=st.none() | st.integers(1, 4),
    max_steps=st.tuples(*[st.integers(0, 2)] * len(ROLES)),
    bad_luck=st.sampled_from([0.0, 0.5, 1.0]),
    chance=st.integers().map(Random),
)
def test_no_run_exceeds_its_worst_case(
    drawn: list[Record],
    repairs: int,
    tests: float,
    processes: int | None,
    max_steps: tuple[int, ...],
    bad_luck: float,
    chance: Random,
) -> None:
    """Turns, repair turns, prompts, processes, seconds by declared deadlines and records, however its steps end."""
    specs, terms, catalog = specs_of(drawn), terms_of(2, repairs, tests), stepping(*max_steps)
    try:
        bound = walk_bound(specs, "own", catalog, terms)
    except DefinitionError as error:
        if "can loop forever" in str(error) or "an item may record" in str(error):
            reject()
        raise
    most = worst_case(specs, "own", catalog, terms).within(processes=processes)
    for _ in range(3):
        simulation = Simulation(specs, terms, chance, bad_luck=bad_luck, processes=processes, catalog=catalog)
        came_to = simulation.run("own", bound)
        assert keeps_to(came_to, most), (came_to, most)
