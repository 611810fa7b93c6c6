from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.flow import may_call
from codex_multi_role.flow.conditions import known_inputs
from codex_multi_role.reading.places import Place
from tests.support.flows import flow_of

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
