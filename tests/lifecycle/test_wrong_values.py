"""Values in a flow that no run can make right are found before it; values that may be right pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from codex_multi_role.lifecycle.team_loading import load_team
from tests.support.catalogs import message_at

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
WRONG = [
    # values of options
    ("check: command, with: {argv: ls -l}", "with: check command: argv: must be a list of strings, because there is"),
    (
        "check: command, with: {argv: []}",
        "with: check command: argv: list should have at least 1 item after validation",
    ),
    (
        "check: command, with: {argv: [ls], timeout_seconds: 0}",
        "with: check command: timeout_seconds: input should be gr",
    ),
    (
        "check: command, with: {argv: [ls], json: maybe}",
        "with: check command: json: input should be True, False or 'aut",
    ),
    ("check: command, with: {argv: [ls], cwd: 3}", "with: check command: cwd: must be text, not 3"),
    (
        "check: choose, with: {candidates: [], by: [{key: a, prefer: high}]}",
        "with: check choose: by[0].prefer: input sho",
    ),
    ("check: command, with: {argv: '{{ inputs.word }}'}", "with: check command: argv: it would be a text"),
    ("check: command, with: {argv: [ls], expect: '{{ goal }}'}", "with: check command: expect: it would be a text"),
    ("check: command, with: {argv: [ls], json: '{{ inputs.depth }}'}", "with: check command: json: it would be one of"),
    ("check: command, with: {argv: [ls], cwd: ['{{ goal }}']}", "with: check command: cwd: it would be a list"),
    (
        "check: choose, with: {candidates: '{{ steps.lint.stdout }}', by: [{key: a, prefer: highest}]}",
        "with: check choose: candidates: it would be a text",
    ),
    ("check: tests, with: {pytest_comand: pytest}", 'with: check tests: unknown option "pytest_comand"; did you mean'),
    # comparisons
    (
        "check: tests, next: [{when: \"steps.last.verdict == 'ok'\", end: x}]",
        "next[0].when: steps.last.verdict is never",
    ),
    (
        "ask: planner, next: [{when: \"steps.lint.verdict == 'passed'\", end: x}]",
        "next[0].when: steps.lint.verdict is nev",
    ),
    (
        "ask: planner, next: [{when: \"steps.judge.verdict == 'DONE'\", end: x}]",
        "next[0].when: steps.judge.verdict is nev",
    ),
    (
        "ask: planner, next: [{when: \"steps.judge.status == 'approved'\", end: x}]",
        "next[0].when: steps.judge.status is n",
    ),
    (
        "ask: planner, next: [{when: \"steps.planner.status == 'DONE'\", end: x}]",
        "next[0].when: steps.planner.status is ",
    ),
    (
        "ask: planner, next: [{when: \"steps.approve.verdict == 'approved'\", end: x}]",
        "next[0].when: steps.approve.verdict",
    ),
    (
        "ask: planner, next: [{when: \"steps.inner.outcome == 'rde'\", end: x}]",
        "next[0].when: steps.inner.outcome is never",
    ),
    (
        "ask: planner, next: [{when: \"steps.each.failed == 'none'\", end: x}]",
        "next[0].when: steps.each.failed is never 'n",
    ),
    (
        "ask: planner, next: [{when: \"steps.lint.exit_code > '0'\", end: x}]",
        "next[0].when: steps.lint.exit_code > '0' com",
    ),
    ("ask: planner, with: {a: \"{{ inputs.depth == 'fast' }}\"}", "with.a: inputs.depth is never 'fast'"),
    # lists and numbers
    (
        "ask: planner, for_each: {max_items: 3, items: '{{ inputs.word }}'}",
        "for_each.items: must be a list, but {{ inputs.word }} is a te",
    ),
    (
        "ask: planner, for_each: {max_items: 3, items: '{{ inputs.count }}'}",
        "for_each.items: must be a list, but {{ inputs.count }} is a ",
    ),
    (
        "ask: planner, for_each: {max_items: 3, items: '{{ steps.lint.stdout }}'}",
        "for_each.items: must be a list, but {{ steps.lint.stdou",
    ),
    (
        "ask: planner, for_each: {items: [1], concurrency: '{{ inputs.names }}'}",
        "for_each.concurrency: must be a number, but {{ inputs.names",
    ),
]


def load(folder: Path, step: str) -> None:
    (folder / "flows").mkdir(exist_ok=True)
    (folder / "catalog.yaml").write_text(CATALOG)
    (folder / "flows/inner.yaml").write_text(INNER)
    (folder / "flows/outer.yaml").write_text(FLOW % step)
    load_team("outer", folder)


def role_mistake(folder: Path, catalog: str, file: str) -> str:
    (folder / "flows").mkdir()
    (folder / "flows/one.yaml").write_text("steps: [{ask: dev}]")
    (folder / "catalog.yaml").write_text(catalog)
    with pytest.raises(DefinitionError) as caught:
        load_team("one", folder)
    return message_at(folder / file, caught.value)


@pytest.mark.parametrize(("step", "message"), WRONG)
def test_value_that_no_run_can_make_right(tmp_path: Path, step: str, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        load(tmp_path, step)
    assert message_at(tmp_path / "flows/outer.yaml", caught.value).startswith(f"step last: {message}")


@pytest.mark.parametrize(
    "step",
    [
        "check: command, with: {argv: ['{{ inputs.word }}', a], timeout_seconds: 3, expect: '{{ inputs.names }}'}",
        "check: command, with: {argv: '{{ inputs.names }}', json: '{{ inputs.word }}', timeout_seconds: '{{ cycle }}'}",
        "check: command, with: {argv: '{{ vars.rounds }}', environment: '{{ steps.planner.environment }}'}",
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
