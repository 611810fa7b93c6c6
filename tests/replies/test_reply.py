from __future__ import annotations

import subprocess
import sys

import pytest

from codex_multi_role.replies import Reply, read_reply, with_error

SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


def test_good_answer() -> None:
    assert read_reply('Sure!\n```json\n{"summary": "ok"}\n```', SCHEMA) == Reply({"summary": "ok"}, False, "")


def test_any_object_will_do_without_a_schema() -> None:
    assert read_reply('{"x": 1}', None) == Reply({"x": 1}, False, "")


def test_repaired_answer_is_recorded_as_repaired() -> None:
    assert read_reply('{"summary": "ok",}', SCHEMA) == Reply({"summary": "ok"}, True, "")


def test_content_that_parsed_is_never_repaired() -> None:
    text = '{"summary": "{\\"a\\": 1,} // not , mended"}'
    assert read_reply(text, SCHEMA) == Reply({"summary": '{"a": 1,} // not , mended'}, False, "")


@pytest.mark.parametrize(("text", "repaired"), [('{"summary": 1}', False), ('{"summary": 1,}', True)])
def test_schema_also_applies_to_repaired_answers(text: str, repaired: bool) -> None:
    reply = read_reply(text, SCHEMA)
    problem = "The JSON object does not match its schema:\n- $.summary: 1 is not of type 'string'"
    assert reply == Reply(None, repaired, problem)


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "\ufeff\n"])
def test_empty_answer(text: str) -> None:
    assert read_reply(text, SCHEMA) == Reply(None, False, "The answer was empty.", only_text=True)


def test_parse_error_is_reported_with_location() -> None:
    problem = read_reply('{"a": 1, "b" 2}', None).problem
    assert problem == ("The JSON object does not parse: expected ':' after the key 'b', near '{\"a\": 1, \"b\" 2}'.")


def test_object_that_fits_the_schema_is_taken() -> None:
    for text in ('{"x": 1}\n{"summary": "ok"}', 'as in {"summary": 1}: {"summary": "ok"}', '[{"summary": "ok"}]'):
        assert read_reply(text, SCHEMA).handoff == {"summary": "ok"}


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_several_objects_that_could_be_meant_are_asked_about(schema: dict[str, object] | None) -> None:
    reply = read_reply('{"summary": "draft"}\n{"summary": "final"}', schema)
    assert (reply.handoff, reply.problem) == (None, "The answer contains 2 different JSON objects that could be meant.")


def test_last_object_is_reported_if_no_object_fits_schema() -> None:
    assert "$.summary: 2 is not of type 'string'" in read_reply('{"x": 1}\n{"summary": 2}', SCHEMA).problem


@pytest.mark.parametrize("schema", [None, SCHEMA, {"type": "object"}, {**SCHEMA, "additionalProperties": False}])
@pytest.mark.parametrize(
    "text", ['{"error": " no goal "}', "{'error': 'no goal',}", '{"error":"no goal","status":"DONE"}']
)
def test_refusal_is_not_a_handoff_and_needs_no_repair(text: str, schema: dict[str, object] | None) -> None:
    reply = read_reply(f"```json\n{text}\n```", schema)
    assert (reply.handoff, reply.refusal, reply.problem) == ({"error": "no goal"}, "no goal", "")


def test_handoff_with_an_error_of_its_own_is_one() -> None:
    for text in ('{"error": ""}', '{"error": null}', '{"error": {"code": 1}}', '{"error": "x", "files": [1]}'):
        assert not read_reply(text, None).refusal
    own = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    assert read_reply('{"error": "E501"}', own) == Reply({"error": "E501"}, False, "")
    needs_more = {**own, "required": ["error", "line"]}
    assert read_reply('{"error": "no file"}', needs_more).refusal == "no file"


STRICT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary"],
    "properties": {"summary": {"type": "string"}},
}


def test_strict_schema_is_sent_with_room_for_a_refusal() -> None:
    """A model that must fill every field can refuse, and one that does its part says null."""
    sent = with_error(STRICT)
    assert sent is not None
    assert sent["required"] == ["summary", "error"]
    assert read_reply('{"summary": "", "error": "no goal"}', STRICT).refusal == "no goal"
    assert read_reply('{"summary": "ok", "error": null}', STRICT) == Reply({"summary": "ok"}, False, "")
    assert STRICT["required"] == ["summary"]


@pytest.mark.parametrize(
    "schema", [None, {"type": "object"}, {"$ref": "#/$defs/a"}, {**STRICT, "properties": {"error": {}}}]
)
def test_other_schemas_are_sent_as_they_are(schema: dict[str, object] | None) -> None:
    assert with_error(schema) == schema


def test_fields_that_may_be_missing_stay_so() -> None:
    sent = with_error({**STRICT, "required": []})
    assert sent is not None
    assert sent["required"] == []


@pytest.mark.real
def test_importing_the_room_loads_no_heavy_library() -> None:
    code = "import sys, codex_multi_role.replies; print({'jsonschema'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
