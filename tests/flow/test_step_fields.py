"""Fields of steps that templates name are known before a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.state import StepState
from codex_multi_role.flow.step_fields import OWN_FIGURES
from codex_multi_role.lifecycle.team_loading import load_team
from tests.support.catalogs import message_at, raised
from tests.support.plugins import install
from tests.support.workspaces import write_files

CATALOG = """\
version: 1
roles:
  - {name: open, prompt_text: Plan.}
  - {name: closed, prompt_text: Plan., output_schema: &closed
      {type: object, additionalProperties: false, properties: {
      todo: {type: string}, count: {type: integer}, analysis_md: {type: string}}}}
  - {name: patterns, prompt_text: Plan., output_schema:
      {type: object, additionalProperties: false, properties: {}, patternProperties: {"^x": {}}}}
  - {name: helped, prompt_text: Plan., tools: [terminate], output_schema: *closed}
"""
INNER = """\
vars: {rounds: 0}
outputs: [answer, again]
steps:
  - {id: answer, ask: closed}
  - {id: again, call: inner, limits: {depth: 2}}
  - {id: hidden, check: answer, with: {text: x}}
"""
FLOW = """\
steps:
  - {{ask: open}}
  - {{ask: closed}}
  - {{ask: patterns}}
  - {{ask: helped}}
  - {{id: own, ask: closed, reply: {{}}}}
  - {{id: reply, ask: open, reply: {{type: object, additionalProperties: false, properties: {{said: {{}}}}}}}}
  - {{id: each, ask: closed, for_each: [1]}}
  - {{id: alone, ask: closed, isolate: worktree}}
  - {{id: apart, ask: closed, isolate: worktree, merge: none}}
  - {{id: team, ask: "*"}}
  - {{id: measure, check: coverage, with: {{target: a.py}}}}
  - {{id: program, check: command, with: {{argv: [x]}}}}
  - {{id: judge, check: verdict}}
  - {{check: tests}}
  - {{id: approve, review: Good?}}
  - {{call: inner}}
  - {{id: last, check: answer, with: {{text: "{text}"}}}}
"""
VERDICT = """\
from typing import Any
from codex_multi_role.checks import declare_check
from codex_multi_role.checks.contract import CheckResult, ResultPart

class Report(ResultPart):
    output_tail: str

class Verdict(CheckResult):
    bad = ()

    report: Report
    best: dict[str, Any]

@declare_check(result=Verdict)
def verdict(context): ...
"""
Load = Callable[[str], object]

pytestmark = pytest.mark.extensions  # the check `coverage` has a result of many fields


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load a flow whose last step has this template."""
    install(tmp_path, monkeypatch, "checks", ["verdict"], VERDICT)
    write_files(tmp_path, {"catalog.yaml": CATALOG, "flows/inner.yaml": INNER})

    def loaded(text: str) -> object:
        (tmp_path / "flows/outer.yaml").write_text(FLOW.format(text=text))
        return load_team("outer", tmp_path)

    return loaded


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("steps.measure.coverge", 'steps.measure: unknown field "coverge"; did you mean "coverage"?'),
        ("steps['measure']['coverge']", 'steps.measure: unknown field "coverge"; did you mean "coverage"?'),
        ("steps.measure.coverge is defined", 'steps.measure: unknown field "coverge"'),
        ("steps.measure.coverge | default(0)", 'steps.measure: unknown field "coverge"'),
        ("steps.program.json_", 'steps.program: unknown field "json_"; did you mean "json"?'),
        ("steps.judge.report.tail", 'steps.judge.report: unknown field "tail"'),
        ("steps.closed.todos", 'steps.closed: unknown field "todos"; did you mean "todo"?'),
        ("steps.closed.handoff.todos", 'steps.closed.handoff: unknown field "todos"; did you mean "todo"?'),
        ("steps.closed.count == 'many'", "steps.closed.count is never 'many': it is a number"),
        ("steps.closed.todo > 3", "steps.closed.todo > 3 compares a text with a number"),
        ("steps.closed.copy_of", 'steps.closed: unknown field "copy_of"'),
        ("steps.reply.todo", 'steps.reply: unknown field "todo"'),
        ("steps.each.todo", 'steps.each: unknown field "todo"'),
        ("steps.each.result", 'steps.each: unknown field "result"; did you mean "results"?'),
        ("steps.apart.merge", 'steps.apart: unknown field "merge"'),
        ("steps.closed.copy", 'steps.closed: unknown field "copy"'),
        ("steps.team.failed", 'steps.team: unknown field "failed"'),
        ("steps.approve.aproved", 'steps.approve: unknown field "aproved"; did you mean "approved"?'),
        ("steps.inner.result", 'steps.inner: unknown field "result"'),
        ("steps.inner.vars.round", 'steps.inner.vars: unknown field "round"; did you mean "rounds"?'),
        ("steps.inner.steps.hidden", 'steps.inner.steps: unknown field "hidden"'),
        ("steps.inner.steps.answer.todos", 'steps.inner.steps.answer: unknown field "todos"; did you mean "todo"?'),
        ("steps.inner.steps.answer.visits", 'steps.inner.steps.answer: unknown field "visits"'),
    ],
)
def test_field_that_a_step_cannot_have_is_refused(load: Load, tmp_path: Path, expression: str, problem: str) -> None:
    error = raised(DefinitionError, load, f"= {{{{ {expression} }}}}")
    assert message_at(tmp_path / "flows/outer.yaml", error).startswith(f"step last: with.text: {problem}")


@pytest.mark.parametrize(
    "expression",
    [
        "steps.open.anything",
        "steps.patterns.xyz",
        "steps.helped.todos",
        "steps.own.anything",
        "[steps.closed.todo, steps.closed.analysis_md_path, steps.closed.protected_restored]",
        "[steps.closed.web_searches, steps.closed.handoff.todo]",
        "[steps.each.results[0].anything, steps.each.failed, steps.each.handoff.results]",
        "[steps.alone.copy, steps.alone.merge.status, steps.apart.copy]",
        "[steps.team.results, steps.team.declined]",
        "[steps.measure.coverage, steps.measure.reached, steps.measure.protected_restored]",
        "[steps.program.json.anything, steps.judge.report.output_tail, steps.judge.best.anything]",
        "[steps.tests.number, steps.tests.passed, steps.last.reason | default('')]",
        "[steps.approve.approved, steps.approve.comment, steps.approve.by, steps.approve.at]",
        "[steps.inner.outcome, steps.inner.exit_code, steps.inner.vars.rounds, steps.inner.vars.rounds.x]",
        "[steps.inner.steps.answer.todo, steps.inner.steps.again.steps.anything.anything]",
        "[steps.measure.visits, steps.measure.status, steps.measure.error, steps.measure.verdict]",
        "steps.measure.items() | list",
        "steps.measure.get('coverge')",
        "(steps.each.results | first).anything",
    ],
)
def test_field_that_a_step_may_have_is_accepted(load: Load, expression: str) -> None:
    load(f"= {{{{ {expression} }}}}")


def test_name_that_a_template_sets_is_not_the_step(load: Load) -> None:
    load("{{ steps.measure.coverage }}{% for steps in [{'measure': {'a': 1}}] %}{{ steps.measure.a }}{% endfor %}")


def test_own_figures_are_those_that_templates_see_of_every_step() -> None:
    assert StepState().seen().keys() == set(OWN_FIGURES)
