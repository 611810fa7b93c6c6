from __future__ import annotations

import pytest

from codex_multi_role.flow.conditions import UNKNOWN, known_value, meanings_of, names_compared

from .flows import flow_of

FLOW = flow_of("""
inputs: {most: 4, asked: {type: integer}, note: {required: false}}
vars: {fixed: "{{ inputs.most }}", open: "{{ inputs.asked }}", changed: 1, text: "up to {{ inputs.most }}", files: [a]}
steps: [{check: c, set: {changed: "{{ vars.changed + 1 }}"}}]
""")


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (5, 5),
        ("plain", "plain"),
        (["a"], ["a"]),
        (None, None),
        ("{{ 5 }}", 5),
        ("{{ inputs.most }}", 4),
        (" {{ inputs['most'] }} ", 4),
        ("{{ cycles }}", 3),
        ("{{ vars.fixed }}", 4),
        ("{{ vars.files }}", ["a"]),
        ("{{ inputs.asked }}", UNKNOWN),
        ("{{ inputs.note }}", UNKNOWN),
        ("{{ inputs.most + 0 }}", UNKNOWN),
        ("{{ inputs.most }}.", UNKNOWN),
        (["{{ inputs.most }}"], UNKNOWN),
        ("{{ cycle }}", UNKNOWN),
        ("{{ vars.open }}", UNKNOWN),
        ("{{ vars.changed }}", UNKNOWN),
        ("{{ vars.text }}", UNKNOWN),
        ("{{ steps.c.visits }}", UNKNOWN),
        ("{{ item }}", UNKNOWN),
        ("{{ inputs }}", UNKNOWN),
    ],
)
def test_what_a_value_is_before_the_run(value: object, known: object) -> None:
    assert known_value(value, meanings_of(FLOW, 3, {"most": 4, "note": None})) == known


def test_the_names_that_a_condition_compares() -> None:
    assert names_compared("cycle < inputs.most or steps.a.red") == {("cycle",), ("inputs", "most")}
    assert names_compared("1 < vars.a and (vars.b == 2)") == {("vars", "a"), ("vars", "b")}
    assert names_compared("inputs.most") == names_compared(None) == set()
