"""Contracts beside the schemas of authors: what is sent, and contradictions before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog.explorations import ITEM
from codex_multi_role.flow.answer_requirements import FieldRequirement
from codex_multi_role.flow.contract_schemas import sent_schema, with_contract
from codex_multi_role.reading.json_types import Json
from tests.support.console import Completed, console

CLOSED = {"type": "object", "additionalProperties": False, "required": ["a"]}
TASKS = CLOSED | {"properties": {"a": {"type": "string"}, "tasks": {"type": "array"}}}
CONTRACT = (
    FieldRequirement(("tasks",), is_required=True),
    FieldRequirement(("tasks", ITEM), type="object"),
    FieldRequirement(("tasks", ITEM, "title"), is_required=True),
)
CATALOG = "{version: 1, roles: [{name: planner, prompt_text: P}, {name: worker, prompt_text: W}]}"
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
    assert with_contract(schema, CONTRACT) == schema | {"required": ["tasks"]}


def test_contradiction_names_both_places(tmp_path: Path) -> None:
    reply = ", reply: {type: object, properties: {n: {type: [string, 'null']}}}"
    said = _validated(tmp_path, "{{ steps.plan.n + 1 }}", reply).stderr
    assert (
        "own.yaml:3:29: step work: prompt: steps.plan.n must be a number here, but the schema of the answer says"
        in said
    )
    assert "own.yaml:2:30: step plan: reply)" in said


def test_validation_prints_what_steps_must_answer(tmp_path: Path) -> None:
    said = _validated(tmp_path, "{{ steps.plan.n + 1 }}").stdout
    assert "    plan must answer n: a number, required (step work reads it)\n" in said
    shown = console("flows", "show", "own", "--roles", str(tmp_path), folder=tmp_path).stdout
    assert "# What steps must answer\n#   plan  n: a number, required (step work reads it)\n" in shown


def _validated(folder: Path, template: str, reply: str = "") -> Completed:
    (folder / "flows").mkdir()
    (folder / "flows/own.yaml").write_text(FLOW % (reply, template))
    (folder / "catalog.yaml").write_text(
        """{version: 1, roles: [{name: planner, prompt_text: P}, {name: worker, prompt_text: W}]}"""
    )
    return console("flows", "validate", "own", "--roles", str(folder), folder=folder)
