"""Contracts beside the schemas of authors: what is sent, and contradictions before a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_multi_role.catalog.value_uses import ITEM
from codex_multi_role.flow.answer_needs import Need
from codex_multi_role.flow.contract_schemas import sent_schema, with_needs
from codex_multi_role.reading.json_types import Json
from tests.support.console import console

CLOSED = {"type": "object", "additionalProperties": False, "required": ["a"]}
TASKS = CLOSED | {"properties": {"a": {"type": "string"}, "tasks": {"type": "array"}}}
CONTRACT = (
    Need(("tasks",), is_required=True),
    Need(("tasks", ITEM), type="object"),
    Need(("tasks", ITEM, "title"), is_required=True),
)
FLOW = """\
steps:
  - {id: plan, ask: planner%s}
  - {id: work, ask: worker, prompt: "%s"}
"""


def test_closed_schema_is_sent_with_what_it_leaves_open() -> None:
    items = {"type": "object", "required": ["title"], "properties": {"title": {}}}
    tasks = {"type": "array", "items": items}
    expected = TASKS | {"required": ["a", "tasks"], "properties": {"a": {"type": "string"}, "tasks": tasks}}
    assert sent_schema(TASKS, CONTRACT) == expected
    assert sent_schema(TASKS, ()) == TASKS


@pytest.mark.parametrize("schema", [None, {"type": "object", "properties": {"a": {"type": "string"}}}])
def test_open_schema_is_sent_as_it_is(schema: Json | None) -> None:
    assert sent_schema(schema, CONTRACT) == schema


def test_what_is_hard_to_tell_stays_as_the_author_wrote_it() -> None:
    schema = {"type": "object", "properties": {"tasks": {"anyOf": [{"type": "array"}, {"type": "null"}]}}}
    assert with_needs(schema, CONTRACT) == schema | {"required": ["tasks"]}


def _validated(folder: Path, schema: Json | None, template: str, reply: str = "") -> str:
    (folder / "flows").mkdir()
    (folder / "flows/own.yaml").write_text(FLOW % (reply, template))
    roles = [
        {"name": "planner", "prompt_text": "Plan.", "output_schema": schema},
        {"name": "worker", "prompt_text": "W"},
    ]
    (folder / "catalog.yaml").write_text(json.dumps({"version": 1, "roles": roles}, indent=1))
    return console("flows", "validate", "own", "--roles", str(folder), folder=folder).stderr


@pytest.mark.parametrize(
    ("properties", "template", "problem"),
    [
        ({"n": {"type": "string"}}, "{{ steps.plan.n > 3 }}", "steps.plan.n must be a number here, but the schema"),
        ({"n": {"type": "array"}}, "{{ steps.plan.n.name }}", "steps.plan.n.name must be an object here, but"),
        (
            {"n": CLOSED | {"properties": {}}},
            "{{ steps.plan.n.title }}",
            "steps.plan.n.title is read here, but the schema",
        ),
        (
            {"n": {"type": "array", "items": {"type": "string"}}},
            "{% for x in steps.plan.n %}{{ x.t }}{% endfor %}",
            "x.t",
        ),
    ],
)
def test_contradiction_names_both_places(tmp_path: Path, properties: Json, template: str, problem: str) -> None:
    schema = {"type": "object", "properties": properties}
    said = _validated(tmp_path, schema, template)
    problem = problem.replace(
        "x.t", "steps.plan.n[].t must be an object here, but the schema of the answer says a text"
    )
    assert "own.yaml:3:29: step work: prompt: " + problem in said
    assert f"({tmp_path}/catalog.yaml:7:4: role planner: output_schema)" in said


def test_contradiction_with_the_schema_of_the_step_is_found(tmp_path: Path) -> None:
    reply = ", reply: {type: object, properties: {n: {type: [string, 'null']}}}"
    said = _validated(tmp_path, None, "{{ steps.plan.n + 1 }}", reply)
    assert "steps.plan.n must be a number here, but the schema of the answer says a text or null" in said
    assert "own.yaml:2:30: step plan: reply)" in said


@pytest.mark.parametrize(
    "template",
    [
        "{{ steps.plan.n | default('') }}",
        "{% if steps.plan.n is number %}{{ steps.plan.n + 1 }}{% endif %}",
        "{{ steps.plan.n.upper() }}{{ steps.plan.n | join(', ') }}{{ steps.plan.n == 3 }}{{ steps.plan.other > 3 }}",
        "{% for x in steps.plan.n %}{{ x }}{% endfor %}",
    ],
)
def test_what_may_be_meant_does_not_contradict(tmp_path: Path, template: str) -> None:
    assert _validated(tmp_path, {"type": "object", "properties": {"n": {"type": "string"}}}, template) == ""


def test_validation_prints_what_steps_must_answer(tmp_path: Path) -> None:
    _validated(tmp_path, None, "{{ steps.plan.n + 1 }}")
    said = console("flows", "validate", "own", "--roles", str(tmp_path), folder=tmp_path).stdout
    assert "    plan must answer n: a number, required (step work reads it)\n" in said
    shown = console("flows", "show", "own", "--roles", str(tmp_path), folder=tmp_path).stdout
    assert "# What steps must answer\n#   plan  n: a number, required (step work reads it)\n" in shown
