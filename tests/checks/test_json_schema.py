from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codex_multi_role.checks.contract import CheckContext
from codex_multi_role.checks.json_schema import check_schema, schema_problems
from codex_multi_role.errors import UsageError
from tests.support.checks import MakeContext, run_check

PLAN = {
    "type": "object",
    "required": ["plan"],
    "properties": {"plan": {"type": "array", "items": {"type": "object", "required": ["id"]}, "minItems": 1}},
}


def _run(context: CheckContext) -> dict[str, Any]:
    result = run_check(check_schema, context)
    assert list(result) == ["status", "reason", "problems"]
    assert bool(result["problems"]) == (result["status"] != "valid")
    assert result["reason"] == (result["problems"][0] if result["status"] == "could not run" else "")
    return result


def test_value(make_context: MakeContext) -> None:
    assert _run(make_context({}, value={"plan": [{"id": 1}]}, schema=PLAN)) == {
        "status": "valid",
        "reason": "",
        "problems": [],
    }
    result = _run(make_context({}, value={"plan": [{"id": 1}, {"name": "x"}]}, schema=PLAN))
    assert result == {"status": "invalid", "reason": "", "problems": ["$.plan[1]: 'id' is a required property"]}


PAIR = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}, {"type": "string"}]}


@pytest.mark.parametrize(
    ("files", "options", "status"),
    [
        ({"a/plan.json": '{"plan": [{"id": 1}]}'}, {"file": "a/plan.json", "schema": PLAN}, "valid"),
        ({"plan.yaml": "plan: [{id: 1}]"}, {"file": "plan.yaml", "schema": PLAN}, "valid"),
        ({"plan.yml": "plan:\n- id: x"}, {"file": "plan.yml", "schema": PLAN}, "valid"),
        ({}, {"value": None, "schema": {"type": "null"}}, "valid"),
        ({}, {"value": [1, "a"], "schema": PAIR}, "valid"),
        ({}, {"value": ["a", 1], "schema": PAIR}, "invalid"),
    ],
)
def test_files_null_and_older_drafts(
    make_context: MakeContext, files: dict[str, str], options: dict[str, Any], status: str
) -> None:
    assert _run(make_context(files, **options))["status"] == status


def test_schema_in_a_file(make_context: MakeContext) -> None:
    files = {"plan.schema.json": json.dumps(PLAN), "plan.schema.yaml": "required: [plan]"}
    for name in files:
        assert _run(make_context(files, value={"plan": [{"id": 1}]}, schema=name))["status"] == "valid"
        assert _run(make_context(files, value={}, schema=name))["problems"] == ["$: 'plan' is a required property"]


def test_file_that_says_nothing_sensible_is_invalid(make_context: MakeContext) -> None:
    result = _run(make_context({"plan.json": '{\n"plan": ]'}, file="plan.json", schema=PLAN))
    assert result == {"status": "invalid", "reason": "", "problems": ["plan.json: line 2, column 9: Expecting value"]}


def test_file_that_is_missing(make_context: MakeContext) -> None:
    result = _run(make_context({}, file="plan.json", schema=PLAN))
    assert result["status"] == "could not run"
    assert result["problems"] == ["plan.json: cannot be read: No such file or directory"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "not a mapping"),
        ("{", "line 1, column 2"),
        ('{"type": "text"}', r"not a JSON Schema: \$.type: 'text' is not valid"),
        ('{"$schema": "http://example.org/own"}', "unknown JSON Schema draft 'http://example.org/own'"),
        ('{"$schema": "http://["}', "Invalid IPv6"),
        ('{"$schema": 7}', "unknown JSON Schema draft 7"),
        ('{"$ref": "#/$defs/missing"}', "cannot be used"),
        ('{"$ref": "#"}', "cannot be used"),
        ('{"pattern": "("}', "."),
    ],
)
def test_invalid_schema_is_reported(make_context: MakeContext, text: str, problem: str) -> None:
    files = {"s.json": text}
    result = _run(make_context(files, value="text", schema="s.json"))
    assert result["status"] == "could not run"
    assert re.search(problem, result["problems"][0])
    if text.startswith("{") and text != "{":
        with pytest.raises(UsageError, match=f"^check schema: schema: .*{problem}"):
            check_schema(make_context({}, value="text", schema=json.loads(text)))


def test_nothing_is_fetched(make_context: MakeContext) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        remote = {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}
        with pytest.raises(UsageError, match="the schema cannot be used"):
            check_schema(make_context({}, value=1, schema=remote))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_problems_are_bounded_in_number_and_length(make_context: MakeContext) -> None:
    result = _run(make_context({}, value=["x" * 10_000] * 100, schema={"items": {"type": "integer"}}))
    assert len(result["problems"]) == 20
    assert all(len(problem) < 300 for problem in result["problems"])
    assert result["problems"][19].startswith("$[19]: ")


@pytest.mark.parametrize("option", ["file", "schema"])
@pytest.mark.parametrize("path", ["../x.json", "/etc/hostname", ".git/config", "away.json"])
def test_files_elsewhere_are_refused(make_context: MakeContext, option: str, path: str) -> None:
    context = make_context(
        {}, **({"value": 1, "schema": path} if option == "schema" else {"file": path, "schema": PLAN})
    )
    (context.workspace.root / "away.json").symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match=f"^check schema: {option}: unsafe path"):
        check_schema(context)


APPLICATORS = ["$ref", "$dynamicRef", "$defs", "$id", "$anchor", "items", "properties", "patternProperties", "not"]
ASSERTIONS = ["type", "enum", "required", "pattern", "minimum", "multipleOf", "uniqueItems", "format", "$schema"]
WORDS = st.sampled_from([*APPLICATORS, *ASSERTIONS])
SCHEMAS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["#", "object", "array", "(", "#/items", "http://x/y", "http://["]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(WORDS, SCHEMAS, max_size=4), SCHEMAS)
def test_no_schema_is_too_wild(schema: dict[str, Any], value: object) -> None:
    try:
        problems = schema_problems(value, schema)
    except ValueError:
        return
    assert all(problem.startswith("$") for problem in problems)
