"""Comparisons and values of templates that no run can make right are found before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.errors import DefinitionError
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
from tests.support.catalogs import problem_of
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
    with pytest.raises(DefinitionError) as caught:
        check_expression(condition, HERE, TYPES)
    assert str(caught.value).startswith(f"here: {message}")
    assert not hint or caught.value.hint == hint


def test_comparison_within_a_template() -> None:
    with pytest.raises(DefinitionError, match=r"here: inputs\.depth is never .fast."):
        check_template("Be quick{% if inputs.depth == 'fast' %}!{% endif %}", HERE, TYPES)


def test_type_of_a_name_that_a_template_sets_itself() -> None:
    with pytest.raises(DefinitionError, match=r"here: at > 'x' compares a number with a text"):
        check_template("{% set at = cycle + 1 %}{% for _ in inputs.files %}{{ at > 'x' }}{% endfor %}", HERE, TYPES)


def test_unknown_field_is_found_after_a_loop() -> None:
    text = "{% for file in inputs.files %}{{ file }}{% endfor %}{{ inputs.fiels }}{{ steps['a' ~ goal].x }}"
    with pytest.raises(DefinitionError) as caught:
        check_template(text, HERE, TYPES)
    assert str(caught.value) == 'here: unknown input "fiels"; did you mean "files"?'


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
        ("{{ 1 + }}", ANY),
        ("{% if %}", ANY),
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
