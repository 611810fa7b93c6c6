from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.errors import DefinitionError
from tests.support.catalogs import Mistake, Write, load_flow, load_flows, message_at, raised

TOPIC = "inputs: {topic: , depth: 2, strict: {type: boolean, required: false}}\nsteps: [{check: c}]"


@pytest.fixture
def topic(write: Write) -> None:
    write(TOPIC, "flows/topic.yaml")


def test_flow_comes_with_all_that_it_calls(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    write("steps: [{check: c}, {call: left}, {call: right}, {id: again, call: left}]", "flows/top.yaml")
    write("steps: [{call: bottom}]", "flows/left.yaml")
    write("steps: [{call: bottom}, {call: cycles}]", "flows/right.yaml")
    write("steps: [{ask: planner}]", "flows/bottom.yml")
    write("steps: [{ask: nobody}]", "flows/not-called.yaml")
    flows = load_flows("top", tmp_path, two_roles)
    assert list(flows) == ["top", "left", "right", "bottom", "cycles"]
    assert [flow.name for flow in flows.values()] == list(flows)
    assert load_flow("top", tmp_path, two_roles) == flows["top"]
    assert list(load_flows("bottom", tmp_path, two_roles)) == ["bottom"]


def test_unknown_flow_names_the_nearest(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    path = write("steps: [{check: c}, {call: cylces}]", "flows/f.yaml")
    error = raised(DefinitionError, load_flows, "f", tmp_path, two_roles)
    assert message_at(path, error) == 'step cylces: call: unknown flow "cylces"; did you mean "cycles"?'
    assert {"cycles", "f"} <= {*error.hint.removeprefix("Known: ").removesuffix(".").split(", ")}


def test_what_is_wrong_with_a_called_flow_is_found_in_its_file(write: Write, mistake: Mistake) -> None:
    write("steps: [{call: g}]", "flows/f.yaml")
    found = mistake("steps: [{ask: planer}]", "g")
    assert found == 'step planer: ask: unknown role "planer"; did you mean "planner"?'


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{topic: a, dept: 1}", ': flow topic: unknown input "dept"; did you mean "depth"?'),
        ("{depth: 1}", ': flow topic: the input "topic" is missing'),
        ("{topic: a, depth: deep}", ".depth: flow topic: the input \"depth\" is not of type integer: 'deep'"),
        ("{topic: [a]}", ".topic: flow topic: the input \"topic\" is not of type string: ['a']"),
        ("{topic: '{{ itme }}'}", '.topic: unknown template name "itme"'),
        ("{topic: '{{ goal'}", ".topic: the expression ends too early"),
    ],
)
def test_call_gives_the_inputs_of_the_called_flow(mistake: Mistake, given: str, message: str) -> None:
    assert mistake(f"steps: [{{call: topic, with: {given}}}]").startswith(f"step topic: with{message}")


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(
    "given", ["{topic: a}", "{topic: 'about {{ goal }}', depth: '3'}", "{topic: '{{ t }}', strict: '{{ index > 1 }}'}"]
)
def test_constants_of_the_right_type_and_templates_pass(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, given: str
) -> None:
    write(f"steps: [{{call: topic, for_each: [a, b], as: t, with: {given}}}]", "flows/f.yaml")
    assert list(load_flows("f", tmp_path, two_roles)) == ["f", "topic"]


@pytest.mark.parametrize(
    ("flows", "asked", "place", "circle"),
    [
        ({"a": "{call: a}"}, "a", "a.yaml:1:10: step a", "a -> a"),
        ({"a": "{call: b}", "b": "{check: c}, {call: a}"}, "a", "b.yaml:1:22: step a", "a -> b -> a"),
        ({"a": "{call: b}", "b": "{check: c}, {call: a}"}, "b", "a.yaml:1:10: step b", "b -> a -> b"),
        ({"a": "{call: b}", "b": "{call: c}", "c": "{call: b}"}, "a", "c.yaml:1:10: step b", "b -> c -> b"),
        ({"a": "{call: a, limits: {depth: 2}}, {id: x, call: a}"}, "a", "a.yaml:1:48: step x", "a -> a"),
        ({"a": "{call: b, limits: {depth: 2}}", "b": "{call: b}"}, "a", "b.yaml:1:10: step b", "b -> b"),
    ],
)
def test_circle_of_calls_without_a_limit_is_named(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, flows: dict[str, str], asked: str, place: str, circle: str
) -> None:
    for name, steps in flows.items():
        write(f"steps: [{steps}]", f"flows/{name}.yaml")
    error = raised(DefinitionError, load_flows, asked, tmp_path, two_roles)
    expected = f"{tmp_path / 'flows'}/{place}: call: the circle of calls has no limit: {circle}"
    assert str(error) == expected
    assert "limits: {depth: N}" in error.hint


@pytest.mark.parametrize(
    "flows",
    [
        {"a": "{call: a, limits: {depth: 2}}"},
        {"a": "{call: b}", "b": "{call: a, limits: {depth: 2}}"},
        {"a": "{call: b, limits: {depth: 1}}", "b": "{call: a}"},
        {"a": "{call: a, limits: {depth: 2}}, {call: b}", "b": "{call: c}", "c": "{call: b, limits: {depth: 5}}"},
    ],
)
def test_circle_needs_one_limited_call_wherever_it_is_entered(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, flows: dict[str, str]
) -> None:
    for name, steps in flows.items():
        write(f"steps: [{steps}]", f"flows/{name}.yaml")
    for name in flows:
        assert next(iter(load_flows(name, tmp_path, two_roles))) == name
