from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, RouteSpec
from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    name_or_constant,
    parse_expression,
    whole_expression,
)
from codex_multi_role.catalog.flow_spec import never_reached, ways_out
from codex_multi_role.catalog.step_spec import ForEach, Isolate
from codex_multi_role.flow.result_reads import uses_cycles
from tests.support.catalogs import Mistake, Write, load_flow

FLOW = FlowSpec.model_validate(
    {
        "name": "x",
        "steps": [
            {"check": "a", "next": [{"when": "steps.a.red", "to": "c"}]},
            {"check": "b", "next": [{"when": "steps.b.red", "end": "red", "exit": 1}, {"to": "a"}]},
            {"check": "c"},
        ],
    }
)


def test_way_on_comes_last_unless_an_entry_always_holds() -> None:
    assert ways_out(FLOW, 0) == (RouteSpec(when="steps.a.red", to="c"), RouteSpec(to="b"))
    assert ways_out(FLOW, 1) == FLOW.steps[1].next
    assert ways_out(FLOW, 2) == (RouteSpec(end="success"),)


def test_steps_that_nothing_leads_to() -> None:
    assert never_reached(FLOW) == ()
    cut = FLOW.model_copy(
        update={"steps": (FLOW.steps[2].model_copy(update={"next": (RouteSpec(end="x"),)}), *FLOW.steps[:2])}
    )
    assert never_reached(cut) == ("a", "b")


@pytest.mark.parametrize(
    ("step", "uses"),
    [
        ({"next": [{"when": "cycle < cycles", "to": "a"}]}, True),
        ({"with": {"rounds": ["{{ cycles }}"]}}, True),
        ({"with": {"text": "every cycle of {{ goal }}"}}, False),
        ({"next": [{"when": "steps.a.cycles_left", "end": "cycle"}]}, False),
        ({"check": None, "ask": "one", "reply": {"properties": {"a": {"pattern": "{{ cycle"}}}}, False),
    ],
)
def test_flow_uses_cycles_if_an_expression_mentions_them(step: dict[str, Any], uses: bool) -> None:
    about = {"name": "x", "description": "{{ cycle, {% which is no template"}
    assert uses_cycles(FlowSpec.model_validate({**about, "steps": [{"check": "a", **step}]})) is uses


WHOLE_LANGUAGE = """\
description: Every key there is.
inputs: {target: {type: path}, at_once: 2}
vars: {rounds: 0, note: "about {{ goal }} in {{ inputs.target }}, {{ cycles }} cycles"}
steps:
  - id: plan
    ask: planner
    prompt: "Plan {{ goal }} for {{ inputs.target }} in cycle {{ cycle }} of {{ cycles }}: {{ vars.note }}"
    reply: {type: object, required: [todos]}
    limits: {turn_seconds: 60}
    set: {rounds: "{{ vars.rounds + 1 }}", note: "{{ steps.plan.summary }}"}
  - id: work
    ask: developer
    prompt: "{{ index + 1 }}: {{ todo.text }} ({{ item.text }}), after {{ roles.planner.summary }}"
    for_each:
      items: "{{ steps.plan.todos }}"
      as: todo
      concurrency: "{{ inputs.at_once }}"
      max_items: 8
      allow: [failed]
    isolate: worktree
    retry: {attempts: 3, backoff_seconds: 0.5}
  - id: look
    check: command
    with: {argv: ["wc", "{{ file }}"]}
    for_each: {items: [a.py, b.py], as: file, max_items: 2}
  - id: agreed
    review:
      question: "Take {{ steps.work.results | length }} results?"
      show: "{{ steps.work.results }}"
      after: {seconds: 60, answer: reject}
    limits: {visits: 3}
    next:
      - {when: "steps.agreed.approved or vars.rounds >= 3", end: agreed}
      - {to: plan}
"""


def test_every_key_of_the_language_is_read(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    write(WHOLE_LANGUAGE, "flows/all.yaml")
    flow = load_flow("all", tmp_path, two_roles)
    assert [step.kind for step in flow.steps] == ["ask", "ask", "check", "review"]
    work, look = flow.step("work"), flow.step("look")
    assert (work.isolate, work.allow) == (Isolate(), ())
    assert work.for_each == ForEach.model_construct(
        items="{{ steps.plan.todos }}",
        as_="todo",
        concurrency="{{ inputs.at_once }}",
        max_items=8,
        allow=("failed",),
    )
    assert look.for_each == ForEach.model_construct(items=["a.py", "b.py"], as_="file", max_items=2)
    assert flow.vars.keys() == {"rounds", "note"}


def test_steps_are_reached_by_any_entry_and_by_falling_through(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog
) -> None:
    write(
        "steps: [{check: a, next: [{when: 'false', to: d}]}, {check: b, next: [{end: x}]},"
        " {check: c, next: [{to: b}]}, {check: d, next: [{to: c}]}]",
        "flows/f.yaml",
    )
    assert isinstance(load_flow("f", tmp_path, two_roles), FlowSpec)


def test_unknown_step_in_outputs_is_reported(mistake: Mistake) -> None:
    found = mistake("outputs: [look, lok]\nsteps: [{id: look, check: c}]")
    assert found == 'outputs[1]: unknown step "lok"; did you mean "look"?'


@pytest.mark.parametrize("value", ["{{ a }}", "x{% if a %}", "{# why #}", ["a", {"b": "{{ c }}"}]])
def test_what_rendering_may_change(value: object) -> None:
    assert has_expressions(value)


@pytest.mark.parametrize("value", ["plain", "{ x }", "", 3, None, True, ["a", {"b": ["c"]}], {"a": {"b": {}}}])
def test_what_stays_as_it_is(value: object) -> None:
    assert not has_expressions(value)


@pytest.mark.parametrize(
    ("text", "whole"), [(" {{ a.b }}\n", True), ("{{ a }}b", False), ("{{ a }}{{ b }}", False), ("a", False)]
)
def test_whole_expression(text: str, whole: bool) -> None:
    assert (whole_expression(text) is not None) == whole


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("inputs.most", ("inputs", "most")),
        ("steps['a-b']['visits']", ("steps", "a-b", "visits")),
        ("cycles", ("cycles",)),
        ("5", 5),
        ("'x'", "x"),
        ("a.b + 1", None),
        ("a().b", None),
        ("a[b]", None),
    ],
)
def test_name_or_a_constant(expression: str, found: object) -> None:
    assert name_or_constant(parse_expression(expression)) == found
