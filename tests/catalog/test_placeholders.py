from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.catalog.prompts import fill

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
