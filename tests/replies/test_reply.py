from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from codex_multi_role.replies import Reply, read_reply

SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


EMPTY = Reply(None, False, "The answer was empty.", only_text=True)
MISMATCH = "The JSON object does not match its schema:\n- $.summary: %s is not of type 'string'"
UNPARSED = "The JSON object does not parse: expected ':' after the key 'b', near '{\"a\": 1, \"b\" 2}'."


@pytest.mark.parametrize(
    ("text", "schema", "reply"),
    [
        ('Sure!\n```json\n{"summary": "ok"}\n```', SCHEMA, Reply({"summary": "ok"}, False, "")),
        ('{"x": 1}', None, Reply({"x": 1}, False, "")),
        # repaired, which is recorded; content that parsed never is
        ('{"summary": "ok",}', SCHEMA, Reply({"summary": "ok"}, True, "")),
        ('{"summary": "{\\"a\\": 1,} // , mended"}', SCHEMA, Reply({"summary": '{"a": 1,} // , mended'}, False, "")),
        ('{"summary": 1}', SCHEMA, Reply(None, False, MISMATCH % 1)),
        ('{"summary": 1,}', SCHEMA, Reply(None, True, MISMATCH % 1)),
        *((text, SCHEMA, EMPTY) for text in ("", " \n\t", "\ufeff", "\ufeff\n")),
        ('{"a": 1, "b" 2}', None, Reply(None, False, UNPARSED)),
        # the one that fits, or else the last one is reported
        ('{"x": 1}\n{"summary": "ok"}', SCHEMA, Reply({"summary": "ok"}, False, "")),
        ('as in {"summary": 1}: {"summary": "ok"}', SCHEMA, Reply({"summary": "ok"}, False, "")),
        ('[{"summary": "ok"}]', SCHEMA, Reply({"summary": "ok"}, False, "")),
        ('{"x": 1}\n{"summary": 2}', SCHEMA, Reply(None, False, MISMATCH % 2)),
    ],
)
def test_answer_is_read_by_its_schema(text: str, schema: dict[str, object] | None, reply: Reply) -> None:
    assert read_reply(text, schema) == reply


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_several_objects_that_could_be_meant_are_asked_about(schema: dict[str, object] | None) -> None:
    reply = read_reply('{"summary": "draft"}\n{"summary": "final"}', schema)
    assert (reply.handoff, reply.problem) == (None, "The answer contains 2 different JSON objects that could be meant.")


@pytest.mark.parametrize("schema", [None, SCHEMA, {"type": "object"}, {**SCHEMA, "additionalProperties": False}])
@pytest.mark.parametrize(
    "text", ['{"error": " no goal "}', "{'error': 'no goal',}", '{"error":"no goal","status":"DONE"}']
)
def test_refusal_is_not_a_handoff_and_needs_no_repair(text: str, schema: dict[str, object] | None) -> None:
    reply = read_reply(f"```json\n{text}\n```", schema)
    assert (reply.handoff, reply.refusal, reply.problem) == ({"error": "no goal"}, "no goal", "")


NO_REFUSALS = [
    '{"error": {"code": 1}}',
    '{"error": "no goal", "approved": false}',
    '{"error": "no goal", "files": [1]}',
    '{"error": "No errors found.", "status": "DONE"}',
]


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_without_a_schema_anything_but_status_beside_an_error_is_a_handoff(text: str) -> None:
    reply = read_reply(text, None)
    assert (reply.handoff, reply.refusal) == (json.loads(text), "")


WORDS = [
    "none",
    "None",
    "N/A",
    "n/a",
    "-",
    "null",
    "No errors.",
    "no error",
    "There were no errors.",
    "(none)",
    " ",
    "…",
]
FILES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary", "files", "status", "score"],
    "properties": {
        "summary": {"type": "string"},
        "files": {"type": "array"},
        "status": {"enum": ["DONE", "CONTINUE"]},
        "score": {"type": ["integer", "null"]},
    },
}
FULL = {"summary": "ok", "files": [], "status": "DONE", "score": 1}
BLANK = {"summary": " ", "files": [], "status": "CONTINUE", "score": 0}


OPTIONAL = {"type": "object", "properties": {"note": {"type": "string"}}}


@pytest.mark.parametrize("schema", [None, OPTIONAL, {**OPTIONAL, "additionalProperties": False}])
@pytest.mark.parametrize("word", [*WORDS, "no", "ok", "nothing", "", None, False])
def test_answer_with_nothing_but_a_denied_error_is_asked_again(word: object, schema: dict[str, object] | None) -> None:
    """It is neither a handoff nor a refusal."""
    for beside in ({}, {"note": ""}, {"note": None}):
        reply = read_reply(json.dumps({"error": word, **beside}), schema)
        assert (reply.handoff, reply.refusal) == (None, "")
        assert "error" in reply.problem or "$.note" in reply.problem
    told = read_reply(json.dumps({"error": word, "note": "done"}), OPTIONAL)
    assert (told.handoff, told.error) == ({"error": word, "note": "done"}, "")


@pytest.mark.parametrize("word", WORDS)
def test_error_that_denies_an_error_is_ignored(word: str) -> None:
    assert read_reply(json.dumps({**BLANK, "error": word}), FILES) == Reply(BLANK, False, "")
    assert read_reply(json.dumps({"summary": "ok", "error": word}), SCHEMA).error == ""
    assert not read_reply(json.dumps({"error": word}), SCHEMA).refusal


@pytest.mark.parametrize(
    "text", ["No contract", "none of the files exist", "no", "nothing to test was given", "E501", "error", "Error."]
)
def test_error_that_says_something_is_real(text: str) -> None:
    expected = "" if text == "no" else text
    assert read_reply(json.dumps({"error": text}), SCHEMA).refusal == expected


def test_long_error_is_read_in_linear_time() -> None:
    text = "-" * 300_000 + "E501"
    assert read_reply(json.dumps({"error": text}), None).refusal == text


def test_refusal_leaves_every_text_list_and_object_empty() -> None:
    """A choice, a number and a boolean tell nothing: a model that the schema binds must fill them in."""
    for beside in (BLANK, {}, {"status": "DONE"}, {"files": None, "score": 3}):
        assert read_reply(json.dumps({**beside, "error": "no goal"}), FILES).refusal == "no goal"
    only_choice = {**FILES, "required": ["status"]}
    assert read_reply('{"status": "DONE", "error": "no goal"}', only_choice).refusal == "no goal"
    assert read_reply('{"status": "DONE", "files": [1], "error": "no goal"}', only_choice).error == "no goal"


def test_answer_that_is_partly_missing_is_asked_for_again() -> None:
    reply = read_reply('{"summary": "ok", "error": "no files"}', FILES)
    assert (reply.handoff, reply.refusal) == (None, "")
    assert "'files' is a required property" in reply.problem


def test_answer_that_fits_is_a_handoff_whatever_its_error_says() -> None:
    text = json.dumps({**FULL, "error": "No Markdown fence around it."})
    assert read_reply(text, FILES) == Reply(FULL, False, "", error="No Markdown fence around it.")
    opened = {**FILES, "additionalProperties": True}
    assert read_reply(text, opened) == Reply(json.loads(text), False, "", error="No Markdown fence around it.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps(FILES), "The answer is a JSON Schema. Write an object that fits it."),
        ('{"files": [{"path": "a', "The answer was cut off: it ends before a string does. Write a shorter one."),
        ("Here it is.", "The answer contains no JSON object. Write the object itself."),
        ('{"files": [' + '{"path": "a"}, ' * 300, "The answer repeats itself without an end. Write each part once."),
    ],
)
def test_problem_says_what_to_do_about_that_damage(text: str, problem: str) -> None:
    assert read_reply(text, FILES).problem == problem


def test_error_that_the_schema_declares_is_the_authors() -> None:
    own = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    assert read_reply('{"error": "E501"}', own) == Reply({"error": "E501"}, False, "")
    nullable = {**own, "properties": {"error": {"type": ["string", "null"]}}}
    assert read_reply('{"error": "no file"}', nullable).refusal == "no file"
    needs_more = {**own, "required": ["error", "line"]}
    assert read_reply('{"error": "no file"}', needs_more).refusal == "no file"


@pytest.mark.real
def test_importing_the_room_loads_no_heavy_library() -> None:
    code = "import sys, codex_multi_role.replies; print({'jsonschema'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
