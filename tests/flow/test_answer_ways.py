"""An answer is unusable if the templates of every way that it can take fail with it, and with that answer alone."""

from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.flow import AnswerWays, new_state
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.state import FlowState
from codex_multi_role.reading.json_types import Json
from tests.support.flows import CATALOG, flows_of

PLAN = "{id: plan, ask: planner}"
WORK = '{id: work, ask: developer, prompt: "Do %s."}'
TASKS = "{id: work, ask: developer, for_each: '{{ steps.plan.tasks }}', max_items: 3, prompt: '%s'}"
PANEL = "{id: plan, ask: [planner, tester]}"
FINE = "{id: fine, ask: tester}"


def _problem(steps: str, answer: Json, *, called: str = "", of: str = "x", **context: Any) -> str:
    """Of the answer of the planner in the step ``plan`` of the flow ``of``."""
    flows = flows_of(x=f"steps: [{steps}]", **({"inner": called} if called else {}))
    state: FlowState = new_state(flows[of], "reach it", {}, 2)
    state.enter("plan")
    return AnswerWays(Contracts(flows, "x", CATALOG.roles, ["copy"])).problem(
        of, "plan", "planner", {**state.context(), **context}, answer
    )


@pytest.mark.parametrize(
    ("template", "right", "wrong"),
    [
        ("{{ steps.plan.a }}", {"a": 1}, {}),
        ("{{ roles.planner.a }} {{ steps.plan.copy }}", {"a": 1}, {}),
        ("{% if steps.plan.a > 3 %}{{ steps.plan.b }}{% endif %}", {"a": 3}, {"a": 4}),
        ("{% for t in steps.plan.ts %}{{ t.a }}{% endfor %}", {"ts": []}, {"ts": [{"a": 1}, {}]}),
        ("{{ steps.plan.ts | select('lt', 7) | join }}", {"ts": [3]}, {"ts": ["x"]}),
        ("{{ steps.plan.ts | map(attribute='a') | join(' ') }}", {"ts": [{"a": 1}]}, {"ts": [{}]}),
        ("{% set t = steps.plan.ts | first %}{{ t.a }}", {"ts": [{"a": 1}]}, {"ts": [{}]}),
        ("{% macro of(t) %}{{ t.a }}{% endmacro %}{{ of(steps.plan.t) }}", {"t": {"a": 1}}, {"t": {}}),
        (
            "{% for _, ts in steps.plan.ts | groupby('a') %}{{ ts[0].b }}{% endfor %}",
            {"ts": [{"a": 1, "b": 2}]},
            {"ts": [{"a": 1}]},
        ),
        ("{{ (steps.plan.ts | max(attribute='a')).b }}", {"ts": [{"a": 1, "b": 2}]}, {"ts": [{"a": 1}]}),
        ("{{ 'x' ~ steps.plan.a }}{{ 'x' + steps.plan.b }}", {"a": 1, "b": "y"}, {"a": 1, "b": 1}),
        ("{% if steps.fine.ok %}{{ steps.plan.a }}{% endif %}", {}, None),
        ("{{ steps.plan.a if steps.fine.ok else steps.plan.a }}", {"a": 1}, {}),
        ("{% for f in steps.fine.files %}{{ steps.plan.a }}{% endfor %}", {}, None),
        ("{{ steps.fine.word in steps.plan.a }} {{ steps.plan.a | replace('x', steps.fine.word) }}", {"a": "x"}, {}),
        ("{{ steps.fine.never.there }} {{ inputs.missing }}", {}, None),
        ("{% if steps.fine.files | length > 3 %}few{% else %}{{ steps.plan.a }}{% endif %}", {}, None),
        ("{% if steps.fine.a is not defined %}few{% else %}{{ steps.plan.a }}{% endif %}", {}, None),
    ],
)
def test_template_decides_what_is_usable(template: str, right: Json, wrong: Json | None) -> None:
    steps = f"{PLAN}, {FINE}, {WORK % template}"
    assert not _problem(steps, right)
    assert wrong is None or _problem(steps, wrong).startswith("step work cannot use it: ")


WHENS = "{id: plan, ask: planner, next: [{when: \"steps.plan.kind == 'big'\", to: work}, {end: done}]}"
BOTH = "{id: fine, ask: tester, next: [{when: steps.fine.ok, to: work}, {to: last}]}"
CALL = "{id: go, call: inner, with: {tasks: '{{ steps.plan.tasks }}'}}"
INNER = "{inputs: {tasks: {type: list}, name: {default: x}}, steps: [%s]}"
LOOP = "{id: work, ask: developer, prompt: '{% for t in inputs.tasks %}{{ t.title }}{% endfor %}'}"
ENDS = "{id: go, call: inner}, {id: after, ask: tester, prompt: '{{ steps.go.steps.plan.a }}'}"
LAST = "{id: last, ask: tester, prompt: '{{ steps.plan.a }}'}"
AGAIN = "{id: go, ask: developer, max_visits: 1, next: [{when: steps.go.ok, to: plan}, {end: done}]}"
COUNT = '{id: work, check: choose, for_each: [1], concurrency: "{{ steps.plan.a }}"}'


@pytest.mark.parametrize(
    ("steps", "answer", "is_usable"),
    [
        (f"{WHENS}, {WORK % '{{ steps.plan.brief }}'}", {"kind": "small"}, True),
        (f"{WHENS}, {WORK % '{{ steps.plan.brief }}'}", {"kind": "big"}, False),
        (f"{WHENS}, {WORK % '{{ steps.plan.brief }}'}", {}, False),
        (f"{PLAN}, {BOTH}, {WORK % '{{ steps.plan.a }}'}, {{id: last, ask: tester}}", {}, True),
        (f"{PLAN}, {BOTH}, {WORK % '{{ steps.plan.a }}'}, {LAST}", {}, False),
        (f"{PLAN}, {TASKS % '{{ item.a }}'}", {"tasks": [{"a": 1}]}, True),
        (f"{PLAN}, {TASKS % '{{ item.a }}'}", {"tasks": []}, True),
        (f"{PLAN}, {TASKS % '{{ item.a }}'}", {"tasks": [{"a": 1}, {}]}, False),
        (f"{PLAN}, {TASKS % 'x'}", {"tasks": [1, 2, 3, 4]}, False),
        (f"{PLAN}, {TASKS % 'x'}", {"tasks": "many"}, False),
        (f"{PLAN}, {COUNT}", {"a": 3}, True),
        (f"{PLAN}, {COUNT}", {"a": "three"}, False),
        ("{id: plan, ask: planner, set: {n: '{{ steps.plan.a }}'}, next: [{end: done}]}", {}, False),
        (f"{PLAN}, {AGAIN}", {}, True),
    ],
)  # fmt: skip
def test_way_of_the_answer_decides_what_is_usable(steps: str, answer: Json, is_usable: bool) -> None:
    assert (not _problem(steps, answer)) == is_usable


@pytest.mark.parametrize(
    ("answer", "is_usable"),
    [
        ({"tasks": [{"title": "x"}]}, True),
        ({"tasks": [{}]}, False),
        ({"tasks": {"a": 1}}, False),
        ({}, False),
    ],
)
def test_called_flow_reads_its_inputs(answer: Json, is_usable: bool) -> None:
    assert (not _problem(f"{PLAN}, {CALL}", answer, called=INNER % LOOP)) == is_usable


def test_calling_flow_reads_the_answers_of_the_called_one() -> None:
    steps = "steps: [{id: plan, ask: planner}]"
    assert not _problem(ENDS, {"a": 1}, called=steps, of="inner")
    assert "step after" in _problem(ENDS, {}, called=steps, of="inner")


@pytest.mark.parametrize(
    ("template", "answer", "is_usable"),
    [
        ("{% for r in steps.plan.results if r.status == 'done' %}{{ r.role }}: {{ r.a }}{% endfor %}", {"a": 1}, True),
        ("{% for r in steps.plan.results if r.status == 'done' %}{{ r.role }}: {{ r.a }}{% endfor %}", {}, False),
        ("{% for r in steps.plan.results if r.status != 'done' %}{{ r.a }}{% endfor %}", {}, True),
        ("{{ steps.plan.by_role.planner.a }}", {}, False),
        ("{{ steps.plan.by_role.tester.a }} {{ steps.plan.results[1].b }}", {}, True),
        ("{{ steps.plan.results | length }} {{ steps.plan.failed }}", {}, True),
        ("{{ steps.plan.results | map(attribute='a') | join(', ') }}", {}, False),
    ],
)
def test_results_of_a_panel_have_what_the_engine_adds(template: str, answer: Json, is_usable: bool) -> None:
    steps = f"{PANEL}, {WORK % template}"
    assert (not _problem(steps, answer, item="planner", index=0)) == is_usable
