"""What a template shows, and which placeholders it has, before the run it is written for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog.prompts import fill
from codex_multi_role.catalog.template_preview import Unknown, preview
from codex_multi_role.catalog.templates import render
from codex_multi_role.errors import DefinitionError

CONTEXT: dict[str, Any] = {
    "goal": "grow",
    "plan": Unknown("plan", {"visits": 1}),
    "later": Unknown("later", {"visits": 0}, has_value=False),
}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{ plan.todos }}", "<plan.todos>"),
        ("{{ plan['todos'][0].title }}", "<plan.todos[0].title>"),
        ("{{ plan.text[:300] }}", "<plan.text[…]>"),
        ("{{ goal }}: {{ plan.items }} of {{ plan.visits }}", "grow: <plan.items> of 1"),
        ("{{ plan.todos | map(attribute='id') | join(', ') }}", "<plan.todos | map(attribute='id') | join(', ')>"),
        ("{{ plan.n + 1 }}, {{ 2 * plan.n }}", "<plan.n + 1>, <2 * plan.n>"),
        ("{{ plan.text.split(',')[0] }}", "<plan.text.split(',')[0]>"),
        ("{% for each in plan.todos %}- {{ each.id }}{% endfor %}", "- <plan.todos[…].id>"),
        ("{% if plan.ok %}yes{% endif %}{% if plan.n > 3 %}more{% endif %}", "yes"),
        ("{{ plan.text | default('none') }} {{ plan.text is defined }}", "<plan.text> true"),
        ("{{ later.text | default('none') }} {{ later.text is defined }}", "none false"),
        ("{% if later.visits or later.text %}again{% else %}first{% endif %}", "first"),
        ("{{ later.text }}", "<later.text>"),
    ],
)
def test_what_is_unknown_shows_as_where_it_comes_from(template: str, shown: str) -> None:
    assert preview(template, CONTEXT) == shown


def test_single_expression_stays_unknown_or_keeps_its_type() -> None:
    """A template that is a single unknown expression gives an Unknown. Known values keep their type."""
    assert isinstance(preview("{{ plan.todos }}", CONTEXT), Unknown)
    assert preview({"a": ["{{ plan.visits + 1 }}", 2], "b": "{{ [plan.x, 3] }}"}, CONTEXT) == {
        "a": [2, 2],
        "b": ["<plan.x>", 3],
    }


@pytest.mark.parametrize("template", ["{{ -plan.n }}", "{{ goal | truncate(plan.n) }}", "{{ missing.n }}"])
def test_text_that_needs_the_value_stays_as_it_is_written(template: str) -> None:
    assert preview(template, CONTEXT) == template


def test_unknown_value_can_be_written_as_json() -> None:
    assert json.dumps({"item": CONTEXT["plan"], "name": CONTEXT["plan"]["name"]}) == (
        '{"item": "<plan>", "name": "<plan.name>"}'
    )


@given(st.text(max_size=30) | st.sampled_from(["{{ x | upper }}", "{{ x * 2 }}", "{% if x %}{{ y }}{% endif %}"]))
def test_preview_of_known_values_equals_the_rendered_text(template: str) -> None:
    """If every value is known, the preview shows what the run will send."""
    known = {"x": "a", "y": 2}
    try:
        expected = render(template, known, "here")
    except DefinitionError:
        expected = template
    assert preview(template, known) == expected


_BRACE_TEXT = st.text("{}abc <>:[]|\n\"'%$\\") | st.text()


_JSON = st.recursive(
    st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner), max_leaves=8
).map(json.dumps)


@settings(max_examples=settings().max_examples // 4)
@given(before=_JSON, after=_JSON, value=_BRACE_TEXT)
def test_balanced_literal_braces_survive(before: str, after: str, value: str) -> None:
    assert fill(f"{before} {{role_name}} {after}", {"role_name": value}) == f"{before} {value} {after}"


@given(st.lists(_BRACE_TEXT | st.just(None)), _BRACE_TEXT)
def test_what_str_format_takes_means_the_same(parts: list[str | None], value: str) -> None:
    escaped = (part.replace("{", "{{").replace("}", "}}") if part is not None else "{role_name}" for part in parts)
    text = "".join(escaped)
    assert fill(text, {"role_name": value}) == text.format(role_name=value)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("tasks: [ {{ id: <int> }} ]", "tasks: [ { id: <int> } ]"),
        (
            "questions: [ { id: <int> } ]\nfiles: [ {{ path: <s> }} ]",
            "questions: [ { id: <int> } ]\nfiles: [ { path: <s> } ]",
        ),
        ("{{ a: {{ b: {role_name} }} }}", "{ a: { b: x } }"),
        ('{"a": {"b": {}}}', '{"a": {"b": {}}}'),
        ("{{role_name}} {{{role_name}}}", "{role_name} {x}"),
        ("{ open }} {{ closed", "{ open }} { closed"),
    ],
)
def test_doubled_braces_are_single_ones(text: str, filled: str) -> None:
    assert fill(text, {"role_name": "x"}) == filled


def test_values_are_not_filled_again() -> None:
    assert fill("{goal} {role_name}", {"goal": "{role_name}", "role_name": "x"}) == "{role_name} x"


def test_keys_are_taken_literally() -> None:
    assert fill("{a.b} {axb} {a.b|c}", {"a.b": "1", "a.b|c": "2"}) == "1 {axb} 2"
    assert fill("{} {a}", {}) == "{} {a}"
