"""A small valid answer from a JSON Schema."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.playbook.example import NoExample, count_variants, example, is_valid

TASK = {
    "type": "object",
    "required": ["id", "needs"],
    "properties": {"id": {"type": "string"}, "needs": {"type": "array", "items": {"$ref": "#/$defs/task"}}},
}

with_pattern = partial(
    pytest.param,
    marks=pytest.mark.skipif(find_spec("rstr") is None, reason="the extra [patterns] is not installed"),
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "automatic"),
        ({"const": 7}, 7),
        ({"type": "string"}, "automatic"),
        ({"type": "string", "maxLength": 4}, "aa1"),
        ({"type": "string", "minLength": 12}, "automatic_au"),
        with_pattern({"type": "string", "pattern": "^T[0-9]+-[a-z]{2}$"}, "T0-aa"),
        ({"type": "string", "pattern": "^automatic"}, "automatic"),
        with_pattern({"type": "string", "pattern": "^T[0-9]+$", "minLength": 4}, "T0000"),
        with_pattern({"minItems": 2, "uniqueItems": True, "items": {"pattern": "^T[0-9]+$"}}, ["T0", "T00"]),
        ({"type": ["null", "integer"], "minimum": 3}, 3),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "minimum": 7, "multipleOf": 5}, 10),
        ({"type": "integer", "maximum": -4}, -4),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": "string", "examples": ["2024-01-31"], "default": "never"}, "2024-01-31"),
        ({"default": {"deep": 1}}, {"deep": 1}),
        ({"type": "string", "default": None}, "automatic"),
        (
            {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "anyOf": [{"properties": {"a": {"const": 1}}}]},
            {"a": 1},
        ),
        ({"type": "array", "items": {"type": "integer"}}, [0]),
        ({"type": "array", "maxItems": 0}, []),
        ({"properties": {"error": {"type": ["string", "null"]}, "a": {"const": 1}}}, {"error": None, "a": 1}),
        ({"properties": {"error": {"type": "string"}}}, {"error": "automatic"}),
        ({"type": "array", "minItems": 3, "uniqueItems": True}, ["automatic", "automatic 2", "automatic 3"]),
        ({"prefixItems": [{"const": 1}, {"type": "string"}], "items": False}, [1, "automatic 2"]),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 0),
        ({"oneOf": [{"type": "integer"}, {"type": "integer"}, {"type": "string"}]}, "automatic"),
        ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}}}]}, {"a": 1}),
        ({"properties": {"a": {"const": 1}, "b": {"const": 2}}}, {"a": 1, "b": 2}),
        ({"required": ["b"], "properties": {"a": {"const": 1}, "b": {"const": 2}}}, {"b": 2}),
        ({"required": ["x1"], "patternProperties": {"^x": {"type": "integer"}}}, {"x1": 0}),
        ({"properties": {"files": {"type": "array"}, "a": {"const": 1}}}, {"files": [], "a": 1}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}, 1),
    ],
)
def test_example_is_what_a_person_would_write(schema: dict[str, Any], expected: object) -> None:
    assert example(schema) == expected


def test_schema_that_contains_itself_ends() -> None:
    value = example({"$defs": {"task": TASK}, **TASK})
    assert value["needs"][0]["needs"]
    assert str(value).count("automatic") < 10


def test_tree_of_alternatives_stays_small() -> None:
    child = {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
    node = {"required": ["left", "right"], "properties": {"left": child, "right": child}}
    assert len(str(example({"$defs": {"node": node}, "$ref": "#/$defs/node"}))) < 1000


def test_numbers_select_among_the_values_in_turn() -> None:
    schema = {"properties": {"verdict": {"enum": ["revise", "accept"]}, "sure": {"type": "boolean"}}}
    assert count_variants(schema) == 2
    assert [example(schema, number) for number in range(3)] == [
        {"verdict": "revise", "sure": False},
        {"verdict": "accept", "sure": True},
        {"verdict": "revise", "sure": False},
    ]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {"a": False}, "required": ["a"]}, r"\$\.a: nothing is allowed here"),
        with_pattern(
            {"properties": {"a": {"type": "string", "pattern": "^a$", "minLength": 2}}}, r"\$\.a: 'a' is too short"
        ),
        ({"type": "integer", "minimum": 2, "maximum": 1}, "minimum of 2"),
        ({"$ref": "#/$defs/gone"}, "gone"),
        (
            {"$defs": {"a": {"required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
            "itself",
        ),
        ({"type": "array", "minItems": 3, "uniqueItems": True, "items": {"const": 1}}, "non-unique"),
    ],
)
def test_schema_without_an_example_is_refused_with_the_place(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(NoExample, match=problem):
        example(schema)


def bounded(low: int, more: int) -> dict[str, int]:
    return {"minimum": low, "maximum": low + more}


LEAVES = st.one_of(
    st.builds(lambda low, more: {"type": "integer", **bounded(low, more)}, st.integers(-50, 50), st.integers(0, 50)),
    st.builds(lambda low, more: {"type": "number", **bounded(low, more)}, st.integers(-50, 50), st.integers(0, 50)),
    st.builds(
        lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(), min_size=1, unique_by=repr)),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["summary", "files", "status", "error", "ünï"])
    return st.one_of(
        st.builds(
            lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
            inner,
            st.integers(0, 3),
            st.integers(0, 3),
        ),
        st.builds(
            lambda properties, closed: {
                "type": "object",
                "properties": properties,
                "required": sorted(properties)[:2],
                "additionalProperties": not closed,
            },
            st.dictionaries(names, inner, max_size=4),
            st.booleans(),
        ),
        st.builds(lambda alternatives: {"anyOf": alternatives}, st.lists(inner, min_size=1, max_size=3)),
    )


@given(st.recursive(LEAVES, nested, max_leaves=8), st.integers(0, 3))
def test_example_of_every_ordinary_schema_is_valid(schema: dict[str, Any], number: int) -> None:
    assert is_valid(schema, example(schema, number))
