from __future__ import annotations

import pytest

from codex_multi_role.flow.conditions import UNKNOWN, known_truth, known_value, may_be_met, meanings_of, names_compared
from tests.support.flows import flow_of

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


@pytest.mark.parametrize(
    ("when", "known"),
    [
        (None, True),
        ("inputs.most", True),
        ("not inputs.most", False),
        ("inputs.most > 4", False),
        ("inputs.most != 4.5", True),
        ("inputs.most >= vars.fixed and cycles == 3", True),
        ("steps.c.red", None),
        ("not steps.c.red", None),
        ("steps.c.red and inputs.most > 4", False),
        ("steps.c.red and inputs.most", None),
        ("steps.c.red or inputs.most", True),
        ("steps.c.red or inputs.most > 4", None),
        ("inputs.asked", None),
        ("inputs.note", None),
        ("vars.changed > 0", None),
        ("inputs.most < 'x'", None),
        ("inputs.most in [4]", None),
        ("1 < inputs.most < 5", None),
        ("inputs.most | abs", None),
    ],
)
def test_what_is_known_of_a_condition_before_the_run(when: str | None, known: bool | None) -> None:
    assert known_truth(when, meanings_of(FLOW, 3, {"most": 4})) is known


def test_names_that_a_condition_compares() -> None:
    assert names_compared("cycle < inputs.most or steps.a.red") == {("cycle",), ("inputs", "most")}
    assert names_compared("1 < vars.a and (vars.b == 2)") == {("vars", "a"), ("vars", "b")}
    assert names_compared("inputs.most") == names_compared(None) == set()


@pytest.mark.parametrize(
    ("until", "most", "possible"),
    [
        ("results | length > 5", 3, False),
        ("results | length >= 3", 3, True),
        ("4 <= results | list | count", 3, False),
        ("results | length == 2.5", 3, False),
        ("results | length < 0 or results | length > 3", 3, False),
        ("results | length > 1 and results | length < 2", 9, False),
        ("results | length > 1 and results | length < 3", 9, True),
        ("not results | length <= 3", 3, False),
        ("results | length > 3 and results[0].ok", 3, False),
        ("results | length > 3 or results[0].ok", 3, True),
        ("results | selectattr('ok') | list | length > 3", 3, False),
        ("results | map(attribute='ok') | select | list | length == 3", 3, True),
        ("results | selectattr('a') | list | length > 2 and results | rejectattr('b') | list | length < 1", 3, True),
        ("results | length > 2 and results | selectattr('ok') | list | length < 1", 3, True),
        ("false", 3, False),
        ("results", 3, True),
        ("results | length > inputs.most", 3, True),
        ("results | sum(attribute='votes') > 9", 3, True),
        ("results | batch(2) | list | length > 9", 3, True),
        ("results | length is gt 9", 3, True),
        ("results | length > '9'", 3, True),
    ],
)
def test_condition_that_no_number_of_results_meets(until: str, most: int, possible: bool) -> None:
    assert may_be_met(until, most) is possible
