"""An answer that does not fit is corrected where that is exact: nothing is guessed, and the rest must then fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.replies import Reply, read_reply, schema_problems

TASK = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id"],
    "properties": {"id": {"type": "string"}, "owner": {"type": "string"}, "level": {"enum": ["low", "high"]}},
    "patternProperties": {"^x-": {}},
}
PLAN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {
        "summary": {"type": "string"},
        "notes": {"type": "string"},
        "verdict": {"enum": ["good", "bad"]},
        "tasks": {"type": "array", "items": {"$ref": "#/$defs/task"}},
        "first": {"anyOf": [{"$ref": "#/$defs/task"}, {"type": "null"}]},
        "choice": {"oneOf": [{"const": "all"}, {"$ref": "#/$defs/task"}]},
    },
    "$defs": {"task": TASK},
}


TEXT_OR_NULL = {"type": ["string", "null"]}
NULLABLE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary", "notes", "error"],
    "properties": {"summary": {"type": "string"}, "notes": TEXT_OR_NULL, "error": TEXT_OR_NULL},
}


@pytest.mark.parametrize(
    ("value", "handoff"),
    [
        ({"summary": "a"}, {"summary": "a", "notes": None, "error": None}),
        ({"summary": "a", "error": "none"}, {"summary": "a", "notes": None, "error": "none"}),
        ({"notes": "b"}, None),
        ({}, None),
    ],
)
def test_missing_nullable_field_is_null(value: object, handoff: dict[str, Any] | None) -> None:
    """Without a warning, which a null is not worth; `strict_output` asks for it again."""
    reply = _read(value, NULLABLE)
    assert (reply.handoff, reply.corrections) == (handoff, ())
    assert read_reply(json.dumps(value), NULLABLE, strict=True).handoff is None


@pytest.mark.parametrize("beside", [{}, {"summary": "", "notes": None}])
def test_role_declines_by_a_nullable_error(beside: dict[str, Any]) -> None:
    assert _read({**beside, "error": "no access"}, NULLABLE).refusal == "no access"


def _read(value: object, schema: dict[str, Any] = PLAN) -> Reply:
    return read_reply(json.dumps(value), schema)


CORRECTED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "unexpected": ({"summary": "a", "mood": 1}, {"summary": "a"}, ("$.mood dropped",)),
    "schema": ({"$schema": "http://x", "summary": "a"}, {"summary": "a"}, ("$.$schema dropped",)),
    "nested": (
        {"summary": "a", "tasks": [{"id": "1"}, {"id": "2", "done": True, "x-y": 1}]},
        {"summary": "a", "tasks": [{"id": "1"}, {"id": "2", "x-y": 1}]},
        ("$.tasks[1].done dropped",),
    ),
    "null": (
        {"summary": "a", "notes": None, "tasks": [{"id": "1", "level": None}]},
        {"summary": "a", "tasks": [{"id": "1"}]},
        ("$.notes dropped", "$.tasks[0].level dropped"),
    ),
    "blanks": (
        {"summary": " a ", "verdict": " good\n"},
        {"summary": " a ", "verdict": "good"},
        ('$.verdict read as "good"',),
    ),
    "null in anyOf": ({"summary": "a", "choice": None}, {"summary": "a"}, ("$.choice dropped",)),
    "alternative": (
        {"summary": "a", "first": {"id": "1", "level": "low ", "mood": 1}},
        {"summary": "a", "first": {"id": "1", "level": "low"}},
        ('$.first.level read as "low"', "$.first.mood dropped"),
    ),
    "constant": ({"summary": "a", "choice": " all"}, {"summary": "a", "choice": "all"}, ('$.choice read as "all"',)),
    "wrapped": ({"result": {"summary": "a"}}, {"summary": "a"}, ("'result' around it dropped",)),
    "wrapped, corrected": (
        {"$schema": "http://x", "answer": {"summary": "a", "mood": 1}},
        {"summary": "a"},
        ("'answer' around it dropped", "$.mood dropped"),
    ),
}


@pytest.mark.parametrize("name", CORRECTED)
def test_answer_is_corrected(name: str) -> None:
    given, handoff, corrections = CORRECTED[name]
    reply = _read(given)
    assert (reply.handoff, reply.problem) == (handoff, "")
    assert sorted(reply.corrections) == sorted(corrections)
    assert _read(handoff) == Reply(handoff, False, "")


@pytest.mark.parametrize("name", CORRECTED)
def test_strict_reading_corrects_nothing(name: str) -> None:
    reply = read_reply(json.dumps(CORRECTED[name][0]), PLAN, strict=True)
    assert reply.handoff is None
    assert reply.problem


REFUSED = {
    "the rest does not fit": {"summary": 1, "mood": 1},
    "required null": {"summary": None},
    "null in a list": {"summary": "a", "tasks": [None]},
    "nothing known": {"mood": 1, "weather": "fine"},
    "nothing known inside": {"summary": "a", "tasks": [{"name": "1"}]},
    "another case": {"summary": "a", "verdict": "GOOD"},
    "two wrapped": {"result": {"summary": "a"}, "other": {"summary": "b"}},
    "wrapped twice": {"data": {"result": {"summary": "a"}}},
    "wrapped in a list": {"result": [{"summary": "a"}, 1]},
    "wrapped refusal": {"result": {"error": "no goal"}},
    "wrapped in a field of its own": {"tasks": {"summary": "a"}},
    "the schema itself": PLAN,
}


@pytest.mark.parametrize("name", REFUSED)
def test_answer_that_cannot_be_corrected_is_asked_for_again(name: str) -> None:
    reply = _read(REFUSED[name])
    assert (reply.handoff, reply.corrections) == (None, ())
    assert reply.problem == read_reply(json.dumps(REFUSED[name]), PLAN, strict=True).problem


def test_schema_without_required_fields_takes_no_answer_that_has_none_of_its_own() -> None:
    optional = {**PLAN, "required": []}
    for value in ({"mood": 1}, PLAN, {"notes": None}):
        assert _read(value, optional).handoff is None


@pytest.mark.parametrize(
    "value", [{"result": {"summary": "a"}}, {"notes": None, "mood": 1}, {"$schema": "x", "verdict": " good "}]
)
def test_answer_that_the_schema_accepts_is_never_changed(value: dict[str, Any]) -> None:
    assert _read(value, {"type": "object", "properties": {"summary": {}}}) == Reply(value, False, "")
    assert read_reply(json.dumps(value), None) == Reply(value, False, "")


def test_two_alternatives_that_could_be_meant_are_asked_about() -> None:
    closed = {"type": "object", "additionalProperties": False, "properties": {"a": {}}}
    schema = {"properties": {"either": {"anyOf": [closed, {**closed, "properties": {"b": {}}}]}}}
    assert _read({"either": {"a": 1, "b": 2}}, schema).handoff is None
    assert _read({"either": {"a": 1, "c": 2}}, schema).handoff == {"either": {"a": 1}}


def test_object_that_fits_as_it_stands_beats_a_corrected_one() -> None:
    text = '{"summary": "draft", "mood": 1}\n{"summary": "final"}\n{"result": {"summary": "x"}}'
    assert read_reply(text, PLAN) == Reply({"summary": "final"}, False, "")


def test_two_objects_that_fit_after_a_correction_are_asked_about() -> None:
    problem = read_reply('{"summary": "a", "mood": 1}\n{"summary": "b", "mood": 1}', PLAN).problem
    assert problem == "The answer contains 2 different JSON objects that could be meant."


def test_error_beside_a_corrected_answer_is_reported_once() -> None:
    value = {"summary": "a", "mood": 1, "error": "E501"}
    assert _read(value) == Reply({"summary": "a"}, False, "", error="E501", corrections=("$.mood dropped",))
    assert _read({"result": value}).error == "E501"


def test_long_names_are_cut() -> None:
    (correction,) = _read({"summary": "a", "m" * 500: 1}).corrections
    assert len(correction) < 80


_TEXTS = st.sampled_from(["a", " good ", "bad", "low ", "all", ""])
_TASKS = st.dictionaries(st.sampled_from(["id", "owner", "level", "x-y", "mood"]), st.none() | _TEXTS)
_NAMES = st.sampled_from([*PLAN["properties"], "mood", "error", "$schema"])
_ANSWERS = st.dictionaries(_NAMES, st.none() | _TEXTS | _TASKS | st.lists(_TASKS | st.none(), max_size=2), min_size=1)


def _is_part_of(part: object, whole: object) -> bool:
    """Whether ``part`` is ``whole`` without some fields of its objects and without blanks around its texts."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _is_part_of(each, whole[name]) for name, each in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_is_part_of, part, whole))
    return part == whole or (isinstance(whole, str) and part == whole.strip())


@given(_ANSWERS | st.fixed_dictionaries({"result": _ANSWERS}))
def test_corrected_answer_fits_and_is_part_of_what_was_written(value: dict[str, Any]) -> None:
    reply, problems = _read(value), schema_problems(value, PLAN)
    if not problems:
        assert reply == Reply(value, False, "", error=reply.error)
    elif reply.handoff is None:
        assert reply.problem.endswith("\n".join(f"- {problem}" for problem in problems))
    elif not reply.refusal:
        assert schema_problems(reply.handoff, PLAN) == []
        assert _is_part_of(reply.handoff, value) or _is_part_of(reply.handoff, value["result"])
