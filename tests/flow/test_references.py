from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.catalog.flow_expressions import sandbox
from codex_multi_role.catalog.templates import render
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import new_state
from codex_multi_role.flow.read_checks import check_reads
from codex_multi_role.flow.references import unused_roles
from tests.support.catalogs import Mistake, Write, load_flows, problem_of
from tests.support.wrong_values import rows_of

FORM = "{id: r, review: {question: 'Ok?', fields: {"
STALE = [
    ("{ask: planner, prompt: '{{ gaol }}'}", 'prompt: unknown template name "gaol"; did you mean "goal"?'),
    ("{ask: planner, prompt: '{{ goal'}", "prompt: the expression ends too early"),
    (
        "{ask: planner, reply: {type: objekt}}",
        "reply.type: not a valid JSON Schema: 'objekt' is not valid under any of the give",
    ),
    ("{id: r, review: 'Ok, {{ inputs.fiel }}?'}", 'review: unknown input "fiel"; did you mean "file"?'),
    ("{id: r, review: {question: 'Ok?', show: '{{ steps.q }}'}}", 'review.show: unknown step "q"'),
    (f"{FORM}a: {{default: ['{{{{ vars.ruonds }}}}']}}}}}}}}", 'review.fields.a.default[0]: unknown var "ruonds"'),
    (
        f"{FORM}a: {{type: array, default: '{{{{ goal }}}}'}}}}}}}}",
        "review.fields.a.default: must be a list, but {{ goal",
    ),
    (
        f"{FORM}a: {{type: integer, default: 'v{{{{ cycle }}}}'}}}}}}}}",
        "review.fields.a.default: must be a number, but v",
    ),
    ("{check: c, with: {a: ['{{ vars.ruonds }}']}}", 'with.a[0]: unknown var "ruonds"; did you mean "rounds"?'),
    (
        "{check: c, for_each: {items: '{{ inputs.fiels }}', max_items: 3}}",
        'for_each.items: unknown input "fiels"; did you mean',
    ),
    ("{check: c, for_each: ['{{ cylce }}']}", 'for_each[0]: unknown template name "cylce"; did you mean "cycle"?'),
    (
        "{check: c, for_each: {items: [1], concurrency: '{{ inputs.fiel }}'}}",
        'for_each.concurrency: unknown input "fiel"',
    ),
    ("{check: c, set: {rounds: '{{ vars.round }}'}}", 'set.rounds: unknown var "round"; did you mean "rounds"?'),
    ("{check: c, next: [{when: 'vars.round', end: x}]}", 'next[0].when: unknown var "round"; did you mean'),
    ("{check: c, next: [{end: x, reason: '{{ vars.round }}'}]}", 'next[0].reason: unknown var "round"; did you'),
    (
        "{check: c, next: [{end: x, suggest: 'fork RUN {{ inputs.fiel }}'}]}",
        'next[0].suggest: unknown input "fiel"',
    ),
]
OUT_OF_SCOPE = [
    ("{check: c, with: {a: '{{ item }}'}}", 'with.a: unknown template name "item"'),
    ("{ask: planner, prompt: '{{ index }}'}", 'prompt: unknown template name "index"'),
    (
        "{check: c, for_each: {items: [1], as: file}, with: {a: '{{ flie }}'}}",
        'with.a: unknown template name "flie"; did you',
    ),
    (
        "{check: c, next: [{end: x, suggest: 'fork RUN {{ goal }}'}]}",
        'next[0].suggest: unknown template name "goal"',
    ),
    ("{check: c, for_each: ['{{ item }}']}", 'for_each[0]: unknown template name "item"'),
    (
        "{check: c, for_each: {items: [1], concurrency: '{{ item }}'}}",
        'for_each.concurrency: unknown template name "item"',
    ),
    ("{check: c, for_each: [1], set: {rounds: '{{ item }}'}}", 'set.rounds: unknown template name "item"'),
    ("{check: c, for_each: [1], next: [{when: 'item', end: x}]}", 'next[0].when: unknown template name "item"'),
]


@pytest.mark.parametrize(("step", "message"), STALE + OUT_OF_SCOPE)
def test_unknown_names_are_found_wherever_they_stand(mistake: Mistake, step: str, message: str) -> None:
    found = mistake(f"inputs: {{file: x}}\nvars: {{rounds: 0}}\nsteps: [{step}]")
    assert found.partition(": ")[2].startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{{ inputs.fiel }}", 'unknown input "fiel"; did you mean "file"?'),
        ("{{ vars.a }}", 'unknown template name "vars"'),
        ("{{ steps.c.visits }}", 'unknown template name "steps"'),
        ("{{ goal", "the expression ends too early"),
    ],
)
def test_initial_variables_use_only_what_a_run_starts_with(mistake: Mistake, value: str, message: str) -> None:
    """Inputs can be used; other variables and steps cannot."""
    found = mistake(f"inputs: {{file: x}}\nvars: {{a: 1, b: ['{value}']}}\nsteps: [{{check: c}}]")
    assert found.startswith(f"vars.b[0]: {message}")


def test_roles_that_no_step_asks(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    write("steps: [{ask: developer}]", "flows/half.yaml")
    write("steps: [{check: c}, {call: half}]", "flows/outer.yaml")
    write("steps: [{check: c}]", "flows/none.yaml")
    assert unused_roles(load_flows("half", tmp_path, two_roles), two_roles) == ("planner",)
    assert unused_roles(load_flows("outer", tmp_path, two_roles), two_roles) == ("planner",)
    assert unused_roles(load_flows("none", tmp_path, two_roles), two_roles) == ("planner", "developer")
    assert unused_roles(load_flows("cycles", tmp_path, two_roles), two_roles) == ()


LOOP = """\
vars: {{seen: 0}}
steps:
  - {{id: plan, ask: planner{plan}}}
  - {{id: work, ask: developer{work}}}
  - id: measure
    check: tests
    limits: {{visits: 3}}
    next:
      - {{when: "steps.measure.failed > 0", to: work}}
      - {{when: "steps.measure.failed < 0", to: plan}}
      - {{end: done}}
"""


@pytest.fixture
def problem(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> Mistake:
    """What is wrong with `LOOP`, whose steps ``plan`` and ``work`` have these further keys."""

    def found(*, plan: str = "", work: str = "") -> str:
        write(LOOP.format(plan=plan and f", {plan}", work=work and f", {work}"), "flows/loop.yaml")
        return problem_of(lambda: check_reads(load_flows("loop", tmp_path, two_roles)))

    return found


@pytest.mark.parametrize(("template", "before"), rows_of("templates", "later", "before"))
def test_result_of_a_later_step_cannot_be_filled(problem: Mistake, tmp_path: Path, template: str, before: str) -> None:
    """The loop leads back, but the first visit of `work` always comes before the first one of `measure`."""
    found = problem(work=f'prompt: "{template}"')
    assert before in found
    assert found.startswith(f"{tmp_path}/flows/loop.yaml:4:32: step work: prompt: steps.measure." if before else "")
    assert bool(found) == bool(before)


def test_own_result_is_known_only_after_the_step(problem: Mistake) -> None:
    own = "{{ steps.plan.goal }}"
    assert "step plan: prompt: steps.plan.goal cannot" in problem(plan=f'prompt: "{own}"')
    assert problem(plan=f'set: {{seen: "{own}"}}') == ""
    wrong = problem(plan='set: {seen: ["{{ steps.work.summary }}"]}')
    assert "step plan: set.seen[0]: steps.work.summary cannot" in wrong
    routed = problem(plan='next: [{when: "steps.work.done", to: work}]')
    assert "step plan: next[0].when: steps.work.done cannot" in routed
    second = 'next: [{when: "cycle > 1", to: work}, {when: "steps.work.done", to: work}]'
    assert problem(plan=second) == ""


def test_items_that_may_be_none_are_not_judged(problem: Mistake) -> None:
    prompt = 'prompt: "{{ steps.measure.failed }}"'
    items = 'for_each: {items: "{{ steps.plan.tasks }}", max_items: 3}'
    assert problem(work=f"{items}, {prompt}") == ""
    assert "step work: prompt: " in problem(work=f"for_each: [1], {prompt}")
    listed = 'for_each: {items: "{{ steps.measure.tasks }}", max_items: 3}'
    assert "step work: for_each.items: " in problem(work=listed)


ARGUMENTS = {
    **dict.fromkeys(("attr", "groupby"), "('a')"),
    **dict.fromkeys(("batch", "slice"), "(2)"),
    **dict.fromkeys(("rejectattr", "selectattr"), "('a')"),
    **{"format": "(1)", "map": "(attribute='a')", "replace": "('a', 'b')"},
}
"""What filters need."""


@pytest.mark.parametrize("name", sorted({*sandbox().filters}))
def test_filter_needs_a_value_if_the_engine_fails_without_one(problem: Mistake, name: str) -> None:
    one = FlowSpec.model_validate({"name": "one", "steps": [{"id": "a", "ask": "planner"}]})
    context = new_state(one, "goal", {}, 1).context()
    template = f"= {{{{ steps.measure.value | {name}{ARGUMENTS.get(name, '')} }}}}"
    try:
        render(template.replace("measure", "a"), context, "here")
        is_filled = True
    except DefinitionError:
        is_filled = False
    assert (problem(work=f'prompt: "{template}"') == "") == is_filled
