from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_expressions import sandbox
from codex_multi_role.catalog.templates import render
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import new_state
from codex_multi_role.flow.unfillable_templates import check_reads
from tests.support.catalogs import Write, load_flow, load_flows, problem_of
from tests.support.wrong_values import rows_of

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


def _problem(tmp_path: Path, write: Write, catalog: RoleSpecCatalog, *, plan: str = "", work: str = "") -> str:
    write(LOOP.format(plan=plan and f", {plan}", work=work and f", {work}"), "flows/loop.yaml")
    return problem_of(lambda: check_reads(load_flows("loop", tmp_path, catalog)))


@pytest.mark.parametrize(("template", "before"), rows_of("templates", "later", "before"))
def test_result_of_a_later_step_cannot_be_filled(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, template: str, before: str
) -> None:
    """The loop leads back, but the first visit of `work` always comes before the first one of `measure`."""
    problem = _problem(tmp_path, write, two_roles, work=f'prompt: "{template}"')
    assert before in problem
    assert problem.startswith(f"{tmp_path}/flows/loop.yaml:4:32: step work: prompt: steps.measure." if before else "")
    assert bool(problem) == bool(before)


def test_own_result_is_known_only_after_the_step(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    own = "{{ steps.plan.goal }}"
    assert "step plan: prompt: steps.plan.goal cannot" in _problem(tmp_path, write, two_roles, plan=f'prompt: "{own}"')
    assert _problem(tmp_path, write, two_roles, plan=f'set: {{seen: "{own}"}}') == ""
    wrong = _problem(tmp_path, write, two_roles, plan='set: {seen: ["{{ steps.work.summary }}"]}')
    assert "step plan: set.seen[0]: steps.work.summary cannot" in wrong
    routed = _problem(tmp_path, write, two_roles, plan='next: [{when: "steps.work.done", to: work}]')
    assert "step plan: next[0].when: steps.work.done cannot" in routed
    second = 'next: [{when: "cycle > 1", to: work}, {when: "steps.work.done", to: work}]'
    assert _problem(tmp_path, write, two_roles, plan=second) == ""


def test_items_that_may_be_none_are_not_judged(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    prompt = 'prompt: "{{ steps.measure.failed }}"'
    items = 'for_each: {items: "{{ steps.plan.tasks }}", max_items: 3}'
    assert _problem(tmp_path, write, two_roles, work=f"{items}, {prompt}") == ""
    assert "step work: prompt: " in _problem(tmp_path, write, two_roles, work=f"for_each: [1], {prompt}")
    listed = 'for_each: {items: "{{ steps.measure.tasks }}", max_items: 3}'
    assert "step work: for_each.items: " in _problem(tmp_path, write, two_roles, work=listed)


ARGUMENTS = {
    **dict.fromkeys(("attr", "groupby"), "('a')"),
    **dict.fromkeys(("batch", "slice"), "(2)"),
    **dict.fromkeys(("rejectattr", "selectattr"), "('a')"),
    **{"format": "(1)", "map": "(attribute='a')", "replace": "('a', 'b')"},
}
"""What filters need."""


@pytest.mark.parametrize("name", sorted({*sandbox().filters}))
def test_filter_needs_a_value_if_the_engine_fails_without_one(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog, name: str
) -> None:
    write("steps: [{id: a, ask: planner}]", "flows/one.yaml")
    context = new_state(load_flow("one", tmp_path, two_roles), "goal", {}, 1).context()
    template = f"= {{{{ steps.measure.value | {name}{ARGUMENTS.get(name, '')} }}}}"
    try:
        render(template.replace("measure", "a"), context, "here")
        is_filled = True
    except DefinitionError:
        is_filled = False
    assert (_problem(tmp_path, write, two_roles, work=f'prompt: "{template}"') == "") == is_filled
