"""Comparisons and values of templates that no run can make right are found before it; what conditions tell then."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.conditions import UNKNOWN, known_truth, known_value, may_be_met, meanings_of, names_compared
from codex_multi_role.flow.template_types import check_expression, check_template, type_of_value
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.value_types import (
    ANY,
    BOOLEAN,
    LIST,
    MAPPING,
    NUMBER,
    TEXT,
    ValueType,
    fields_named,
    one_of,
)
from tests.support.catalogs import problem_of, raised
from tests.support.flows import flow_of
from tests.support.wrong_values import rows_of

HERE = Place(Path("here"))
STATUS = one_of("not_started", "running", "done", "failed")
TYPES = {
    "goal": TEXT,
    "cycle": NUMBER,
    "item": ANY,
    "vars": ValueType.of_fields(fields_named(["rounds"])),
    "inputs": ValueType.of_fields(
        {"depth": one_of("deep", "quick"), "most": NUMBER, "note": TEXT | one_of(None), "files": LIST}
    ),
    "steps": ValueType.of_fields(
        {
            "lint": ValueType.of_fields(
                {
                    "status": STATUS,
                    "verdict": one_of("ok", "failed", "timed out", ""),
                    "exit_code": NUMBER | one_of(None),
                    "stdout": TEXT,
                    "json": ANY,
                }
            ),
            "plan": MAPPING,
        }
    ),
}


@pytest.mark.parametrize(("condition", "message", "hint"), rows_of("templates", "condition", "before", "hint"))
def test_comparison_that_is_decided_before_a_run(condition: str, message: str, hint: str) -> None:
    if not message:
        check_expression(condition, HERE, TYPES)
        return
    error = raised(DefinitionError, check_expression, condition, HERE, TYPES)
    assert str(error).startswith(f"here: {message}")
    assert not hint or error.hint == hint


def test_comparison_within_a_template() -> None:
    with pytest.raises(DefinitionError, match=r"here: inputs\.depth is never .fast."):
        check_template("Be quick{% if inputs.depth == 'fast' %}!{% endif %}", HERE, TYPES)


def test_type_of_a_name_that_a_template_sets_itself() -> None:
    with pytest.raises(DefinitionError, match=r"here: at > 'x' compares a number with a text"):
        check_template("{% set at = cycle + 1 %}{% for _ in inputs.files %}{{ at > 'x' }}{% endfor %}", HERE, TYPES)


def test_unknown_field_is_found_after_a_loop() -> None:
    text = "{% for file in inputs.files %}{{ file }}{% endfor %}{{ inputs.fiels }}{{ steps['a' ~ goal].x }}"
    error = raised(DefinitionError, check_template, text, HERE, TYPES)
    assert str(error) == 'here: unknown input "fiels"; did you mean "files"?'


def test_name_that_a_template_sets_itself_has_another_type() -> None:
    check_template("{% for goal in range(3) %}{{ goal > 1 }}{% endfor %}", HERE, TYPES)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("plain", one_of("plain")),
        (3, one_of(3)),
        (["{{ cycle }}"], LIST),
        ("{{ cycle }}", NUMBER),
        ("{{ cycle }}.", TEXT),
        ("{{ inputs.files }}", LIST),
        ("{{ inputs.files[0] }}", ANY),
        ("{{ inputs | list }}", LIST),
        ("{{ 'a' if goal else 'b' }}", one_of("a", "b")),
        ("{{ steps.plan | tojson }}", TEXT),
        ("{{ goal", ANY),
        ("{{ cycle - 1 }}", NUMBER),
        ("{{ not goal }}", BOOLEAN),
        ("{{ goal ~ cycle }}", TEXT),
        ("{{ inputs.note or cycle }}", TEXT | one_of(None) | NUMBER),
        ("{{ {'a': goal} }}", MAPPING),
        ("{{ steps.plan.tasks | map(attribute='id') | list }}", LIST),
        ("{{ steps.plan.tasks | map(attribute='id') }}", LIST),
    ],
)
def test_type_of_value_once_its_templates_are_rendered(value: object, known: ValueType) -> None:
    found = type_of_value(value, TYPES)
    assert (found.kinds, found.values) == (known.kinds, known.values)


WORDS = "steps.lint.verdict steps.lint inputs.files inputs.depth goal 'ok' 3 none true ( ) [ ] { } : , . | == != < > in"
WORDS += " not and or is defined if else - + ~ * length default('x') list"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join))
def test_any_expression_has_a_type_or_is_refused_as_a_mistake(expression: str) -> None:
    assert type_of_value(f"{{{{ {expression} }}}}", TYPES).kinds
    problem = problem_of(lambda: check_expression(expression, HERE, TYPES))
    assert not problem or problem.startswith("here: ")


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
        ("steps.c.red and inputs.most > 4", False),
        ("steps.c.red and inputs.most", None),
        ("steps.c.red or inputs.most", True),
        ("steps.c.red or inputs.most > 4", None),
        ("inputs.asked", None),
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
        ("results | length is gt 9", 3, True),
        ("results | length > '9'", 3, True),
    ],
)
def test_condition_that_no_number_of_results_meets(until: str, most: int, possible: bool) -> None:
    assert may_be_met(until, most) is possible
