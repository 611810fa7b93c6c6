from __future__ import annotations

import pytest

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    name_or_constant,
    parse_expression,
    whole_expression,
)


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
