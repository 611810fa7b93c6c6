from __future__ import annotations

import subprocess
import sys

import pytest

from codex_multi_role.replies import Reply, read_reply

SCHEMA = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


def test_a_good_answer() -> None:
    assert read_reply('Sure!\n```json\n{"summary": "ok"}\n```', SCHEMA) == Reply({"summary": "ok"}, False, "")


def test_any_object_will_do_without_a_schema() -> None:
    assert read_reply('{"x": 1}', None) == Reply({"x": 1}, False, "")


def test_a_mended_answer_is_recorded_as_such() -> None:
    assert read_reply('{"summary": "ok",}', SCHEMA) == Reply({"summary": "ok"}, True, "")


def test_content_that_parsed_is_never_mended() -> None:
    text = '{"summary": "{\\"a\\": 1,} // not , mended"}'
    assert read_reply(text, SCHEMA) == Reply({"summary": '{"a": 1,} // not , mended'}, False, "")


@pytest.mark.parametrize(("text", "repaired"), [('{"summary": 1}', False), ('{"summary": 1,}', True)])
def test_the_schema_holds_for_mended_answers_too(text: str, repaired: bool) -> None:
    reply = read_reply(text, SCHEMA)
    problem = "The JSON object does not match its schema:\n- $.summary: 1 is not of type 'string'"
    assert reply == Reply(None, repaired, problem)


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "\ufeff\n"])
def test_an_empty_answer(text: str) -> None:
    assert read_reply(text, SCHEMA) == Reply(None, False, "The answer was empty.", only_text=True)


def test_what_did_not_parse_is_told_with_its_place() -> None:
    problem = read_reply('{"a" and "b"}', None).problem
    assert problem == "The JSON object does not parse: Expecting ':' delimiter near '{\"a\" and \"b\"}'."


def test_importing_the_room_loads_no_heavy_library() -> None:
    code = "import sys, codex_multi_role.replies; print({'jsonschema', 'json_repair'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
