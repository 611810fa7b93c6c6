"""Values in a flow that no run can make right are found before it; values that may be right pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.lifecycle.team_loading import load_team
from tests.support.catalogs import message_at, raised
from tests.support.teams import Record, TeamFolder, with_flow
from tests.support.workspaces import write_files

CATALOG = """\
version: 1
roles:
  - {name: planner, prompt_text: Plan.}
  - {name: judge, prompt_text: Judge., output_schema: {type: object, additionalProperties: false, required: [status],
      properties: {status: {enum: [approved, rejected]}}}}
"""
FLOW = """\
inputs:
  word: {type: string}
  count: {type: integer}
  depth: {type: string, choices: [deep, quick]}
  names: {type: list}
vars: {rounds: 0}
steps:
  - {ask: planner}
  - {ask: judge}
  - {id: lint, check: command, with: {argv: [ruff]}, allow: [failed], next: [{when: "steps.lint.exit_code", to: last}]}
  - {id: approve, review: Good?}
  - {id: each, ask: planner, for_each: [1]}
  - {id: inner, call: inner, next: [{when: "steps.inner.exit_code", to: last}]}
  - {id: last, %s}
"""
INNER = """\
steps:
  - id: lint
    check: command
    with: {argv: [ruff]}
    next: [{when: "steps.lint.exit_code", end: red, exit: 1}, {end: green}]
"""
OPTIONS = [
    ("command", "argv: ls -l", "argv: must be a list of strings, because there is"),
    ("command", "argv: []", "argv: list should have at least 1 item after validation"),
    ("command", "argv: [ls], timeout_seconds: 0", "timeout_seconds: input should be greater"),
    ("command", "argv: [ls], json: maybe", "json: input should be True, False or 'auto'"),
    ("command", "argv: [ls], cwd: 3", "cwd: must be text, not 3"),
    ("choose", "candidates: [], by: [{key: a, prefer: high}]", "by[0].prefer: input should"),
    ("command", "argv: '{{ inputs.word }}'", "argv: it would be a text"),
    ("command", "argv: '{{ vars.rounds }}'", "argv: it would be a number"),
    ("command", "argv: [ls], expect: '{{ goal }}'", "expect: it would be a text"),
    ("command", "argv: [ls], json: '{{ inputs.depth }}'", "json: it would be one of"),
    ("tests", "pytest_comand: pytest", 'unknown option "pytest_comand"; did you mean'),
]
CONDITIONS = {
    "steps.lint.verdict == 'passed'": "steps.lint.verdict is never",
    "steps.judge.verdict == 'DONE'": "steps.judge.verdict is never",
    "steps.judge.status == 'approved'": "steps.judge.status is never",
    "steps.planner.status == 'DONE'": "steps.planner.status is never",
    "steps.approve.verdict == 'approved'": "steps.approve.verdict",
    "steps.inner.outcome == 'rde'": "steps.inner.outcome is never",
    "steps.each.failed == 'none'": "steps.each.failed is never 'none'",
    "steps.lint.exit_code > '0'": "steps.lint.exit_code > '0' com",
}
ITEMS = {
    "{{ inputs.word }}": "must be a list, but {{ inputs.word }} is a text",
    "{{ steps.lint.stdout }}": "must be a list, but {{ steps.lint.stdout }} is a ",
}
IS_OK, IS_FAST = "steps.last.verdict == 'ok'", "{{ inputs.depth == 'fast' }}"
CONCURRENCY = "ask: planner, for_each: {items: [1], concurrency: '{{ inputs.names }}'}"
WRONG = [
    *((f"check: {name}, with: {{{given}}}", f"with: check {name}: {words}") for name, given, words in OPTIONS),
    *(
        (f'ask: planner, next: [{{when: "{each}", end: x}}]', f"next[0].when: {CONDITIONS[each]}")
        for each in CONDITIONS
    ),
    *(
        (f"ask: planner, for_each: {{max_items: 3, items: '{each}'}}", f"for_each.items: {ITEMS[each]}")
        for each in ITEMS
    ),
    (f'check: tests, next: [{{when: "{IS_OK}", end: x}}]', "next[0].when: steps.last.verdict is never"),
    (f'ask: planner, with: {{a: "{IS_FAST}"}}', "with.a: inputs.depth is never 'fast'"),
    (CONCURRENCY, "for_each.concurrency: must be a number, but {{ inputs.names"),
]
"""Steps, and the messages about them."""


def load(folder: Path, step: str) -> None:
    write_files(folder, {"catalog.yaml": CATALOG, "flows/inner.yaml": INNER, "flows/outer.yaml": FLOW % step})
    load_team("outer", folder)


def role_mistake(folder: Path, catalog: str, file: str) -> str:
    write_files(folder, {"flows/one.yaml": "steps: [{ask: dev}]", "catalog.yaml": catalog})
    return message_at(folder / file, raised(DefinitionError, load_team, "one", folder))


@pytest.mark.parametrize(("step", "message"), WRONG)
def test_value_that_no_run_can_make_right(tmp_path: Path, step: str, message: str) -> None:
    error = raised(DefinitionError, load, tmp_path, step)
    assert message_at(tmp_path / "flows/outer.yaml", error).startswith(f"step last: {message}")


@pytest.mark.parametrize(
    "step",
    [
        "check: command, with: {argv: ['{{ inputs.word }}', a], timeout_seconds: 3, expect: '{{ inputs.names }}'}",
        "check: command, with: {argv: '{{ inputs.names }}', json: '{{ inputs.word }}', timeout_seconds: '{{ cycle }}'}",
        "check: command, with: {argv: '{{ steps.planner.argv }}', environment: '{{ steps.planner.environment }}'}",
        "check: command, for_each: [[ls]], with: {argv: '{{ item }}'}",
        "check: choose, with: {candidates: '{{ steps.each.results }}', by: [{key: '{{ goal }}', prefer: highest}]}",
        "ask: planner, for_each: {max_items: 3, items: '{{ inputs.names or steps.planner.tasks }}'}",
        "ask: planner, for_each: {max_items: 3, items: '{{ steps.planner.tasks | map(attribute=1) }}'}",
        "ask: planner, next: [{when: \"steps.lint.verdict in ('failed', 'could not run')\", end: x}]",
        "ask: planner, next: [{when: \"steps.judge.verdict == 'approved' and steps.judge.status == 'done'\", end: x}]",
        "ask: planner, next: [{when: \"steps.planner.verdict == 'DONE' or steps.inner.outcome == 'red'\", end: x}]",
        "ask: planner, next: [{when: \"steps.inner.outcome in ['done', 'lint_failed']\", end: x}]",
    ],
)
def test_value_that_may_be_right(tmp_path: Path, step: str) -> None:
    load(tmp_path, step)


CLOSED = "output_schema: {type: object, additionalProperties: false, properties: {done: {}}}"


def test_closed_schema_without_the_files_that_are_applied(tmp_path: Path) -> None:
    catalog = f"version: 1\nroles:\n  - {{name: dev, prompt_text: A, {CLOSED}, behaviors: {{apply_files: true}}}}\n"
    message = role_mistake(tmp_path, catalog, "catalog.yaml")
    assert message == "role dev: output_schema: forbids files, which behaviors.apply_files writes into the workspace"


def test_closed_schema_without_a_field_that_the_role_is_asked_for(tmp_path: Path) -> None:
    """`status` and `error` belong to every answer."""
    hint = 'Say {"status": "", "done": 1, "todo": 1}.'
    catalog = f"version: 1\nschema_hints: {{dev: '{hint}'}}\nroles: [{{role_file: dev.yaml}}]\n"
    (tmp_path / "dev.yaml").write_text(f"name: dev\nprompt_text: A\n{CLOSED}\n")
    message = role_mistake(tmp_path, catalog, "dev.yaml")
    assert message == "output_schema: forbids todo, which the schema hint of the role shows"


@pytest.mark.parametrize("kept", ["catalog", "catalog/reloaded_001"])
@pytest.mark.parametrize(
    "step",
    [
        "ask: planner, next: [{when: \"steps.lint.verdict == 'passed'\", end: x}]",
        "ask: planner, for_each: [1], until: results | length > 1, on_item_error: cancel",
        "review: Good?, default: reject, retry: {attempts: 2}",
    ],
)
def test_recorded_flow_is_not_judged_again(tmp_path: Path, kept: str, step: str) -> None:
    """A run from before a check of values existed still resumes; its names are checked as ever."""
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / kept).mkdir(parents=True)
    load(tmp_path / kept, step)
    with pytest.raises(DefinitionError, match="unknown field"):
        load(tmp_path / kept, "ask: planner, prompt: '{{ steps.lint.exit_cod }}'")


LINE: Record = {"type": "object", "properties": {"line": {"type": "integer"}}, "additionalProperties": False}
FIELDS: Record = {
    "count": {"type": "integer"},
    "note": {"type": "string"},
    "kind": {"const": "big"},
    "level": {"enum": ["low", "high"]},
    "good": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "where": LINE,
    "maybe": {"type": ["integer", "null"]},
}
SCHEMA: Record = {"type": "object", "properties": FIELDS, "required": [*FIELDS], "additionalProperties": False}
ANSWERS: list[Record] = [{"ask": "one"}, {"review": {"question": "OK?", "fields": FIELDS}}]


def _when(condition: str) -> Record:
    return {"ask": "two", "next": [{"when": condition, "end": "a"}, {"end": "b"}]}


def _prompt(text: str, **more: object) -> Record:
    return {"ask": "two", "prompt": text, **more}


def _set(value: str) -> Record:
    return {"ask": "two", "set": {"n": value}}


def _limit(value: str) -> Record:
    return {"check": "command", "with": {"argv": ["true"], "timeout_seconds": value}}


def _problem(folder: Path, answer: Record, step: Record) -> str:
    team = TeamFolder(folder, {"one": {"output_schema": SCHEMA}, "two": {}}, {})
    with_flow(team, {"vars": {"n": 0, "seen": None}, "steps": [{"id": "a", **answer}, {"id": "work", **step}]})
    try:
        load_team("own", team.folder / "roles")
    except UsageError as error:
        return str(error).partition("step work: ")[2].partition(" (/")[0]
    return ""


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (_when("steps.a.count == 'many'"), "steps.a.count is never 'many': it is a number"),
        (_when("steps.a.good == 'yes'"), "steps.a.good is never 'yes': it is true or false"),
        (_when("steps.a.tags == 'a'"), "steps.a.tags is never 'a': it is a list"),
        (_when("steps.a.kind == 'small'"), "steps.a.kind is never 'small': it is 'big'"),
        (_when("steps.a.level == 'middle'"), "steps.a.level is never 'middle': it is one of 'high', 'low'"),
        (_when("steps.a.where.line == 'x'"), "steps.a.where.line is never 'x': it is a number"),
        (_when("steps.a.maybe == 'x'"), "steps.a.maybe is never 'x': it is a number or null"),
        (_when("steps.a.count > 'x'"), "compares a number with a text"),
        (_when("steps.a.note | default('') > 3"), "compares a text with a number"),
        (_when("'x' in steps.a.count"), "steps.a.count must be a text or a list or an object here"),
        (_when("steps.a.tags[0] > 3"), "steps.a.tags[0] must be a number here"),
        (_limit("{{ steps.a.note }}"), "timeout_seconds: it would be a text"),
        (_prompt("{{ steps.a.note | round }}"), "steps.a.note must be a number here"),
        (_prompt("{{ steps.a.count + steps.a.note }}"), "adds a number and a text"),
        (_set("{{ vars.n + steps.a.note }}"), "set.n: vars.n + steps.a.note adds a number and a text"),
        ({**_when("vars.n == 'x'"), **_set("{{ vars.n + 1 }}")}, "vars.n is never 'x': it is a number"),
        (_prompt("{{ steps.a.count.x }}"), "steps.a.count.x must be an object here"),
        (_prompt("{{ steps.a.where.lien }}"), 'steps.a.where: unknown field "lien"; did you mean "line"?'),
        (
            _prompt("{{ item.name }}", for_each={"items": "{{ steps.a.tags }}", "max_items": 3}),
            "tags[].name must be an object here",
        ),
        (_prompt("{{ item }}", for_each={"items": "{{ steps.a.note }}", "max_items": 3}), "must be a list, but"),
    ],
)
def test_mistake_is_refused_in_equal_words(tmp_path: Path, step: Record, words: str) -> None:
    of_role, of_person = (_problem(tmp_path / str(n), answer, step) for n, answer in enumerate(ANSWERS))
    assert words in of_role
    assert of_role == of_person


@pytest.mark.parametrize(
    "step",
    [
        _when("steps.a.level == 'low' and steps.a.maybe == 3 and steps.a.where.line > 2 and 'a' in steps.a.tags"),
        _when("steps.a.count | default('none') == 'none' or 'x' in steps.a.note or steps.a.maybe is none"),
        _prompt(
            "{{ steps.a.note + steps.a.tags[0] }} {{ steps.a.count + steps.a.where.line }} {{ steps.a.tags | length }}"
        ),
        _set("{{ vars.n + steps.a.count }}"),
        {**_when("vars.n == 'x'"), **_set("{{ steps.a.note if steps.a.good else vars.n }}")},
        _prompt("{{ item.upper() }}", for_each={"items": "{{ steps.a.tags }}", "max_items": 3}),
    ],
)
def test_right_uses_are_accepted(tmp_path: Path, step: Record) -> None:
    assert [_problem(tmp_path / str(n), answer, step) for n, answer in enumerate(ANSWERS)] == ["", ""]
