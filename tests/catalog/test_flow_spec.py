from __future__ import annotations

from typing import Any

import pytest

from codex_multi_role.catalog import FlowSpec, RouteSpec
from codex_multi_role.catalog.flow_spec import never_reached, ways_out
from codex_multi_role.flow.result_reads import uses_cycles

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
