from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog
from codex_multi_role.catalog.step_spec import ForEach, Isolate
from codex_multi_role.errors import DefinitionError
from tests.support.catalogs import Write, load_flow, message_at

WHOLE_LANGUAGE = """\
description: Every key there is.
inputs: {target: {type: path}, at_once: 2}
vars: {rounds: 0, note: "about {{ goal }} in {{ inputs.target }}, {{ cycles }} cycles"}
steps:
  - id: plan
    ask: planner
    prompt: "Plan {{ goal }} for {{ inputs.target }} in cycle {{ cycle }} of {{ cycles }}: {{ vars.note }}"
    reply: {type: object, required: [todos]}
    limits: {turn_seconds: 60}
    set: {rounds: "{{ vars.rounds + 1 }}", note: "{{ steps.plan.summary }}"}
  - id: work
    ask: developer
    prompt: "{{ index + 1 }}: {{ todo.text }} ({{ item.text }}), after {{ roles.planner.summary }}"
    for_each:
      items: "{{ steps.plan.todos }}"
      as: todo
      concurrency: "{{ inputs.at_once }}"
      max_items: 8
      allow: [failed]
    isolate: worktree
    retry: {attempts: 3, backoff_seconds: 0.5}
  - id: look
    check: command
    with: {argv: ["wc", "{{ file }}"]}
    for_each: {items: [a.py, b.py], as: file, max_items: 2}
  - id: agreed
    review:
      question: "Take {{ steps.work.results | length }} results?"
      show: "{{ steps.work.results }}"
      after: {seconds: 60, answer: reject}
    limits: {visits: 3}
    next:
      - {when: "steps.agreed.approved or vars.rounds >= 3", end: agreed}
      - {to: plan}
"""


def test_every_key_of_the_language_is_read(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    write(WHOLE_LANGUAGE, "flows/all.yaml")
    flow = load_flow("all", tmp_path, two_roles)
    assert [step.kind for step in flow.steps] == ["ask", "ask", "check", "review"]
    work, look = flow.step("work"), flow.step("look")
    assert (work.isolate, work.allow) == (Isolate(), ())
    assert work.for_each == ForEach.model_construct(
        items="{{ steps.plan.todos }}",
        as_="todo",
        concurrency="{{ inputs.at_once }}",
        max_items=8,
        allow=("failed",),
    )
    assert look.for_each == ForEach.model_construct(items=["a.py", "b.py"], as_="file", max_items=2)
    assert flow.vars.keys() == {"rounds", "note"}


def test_steps_are_reached_by_any_entry_and_by_falling_through(
    tmp_path: Path, write: Write, two_roles: RoleSpecCatalog
) -> None:
    write(
        "steps: [{check: a, next: [{when: 'false', to: d}]}, {check: b, next: [{end: x}]},"
        " {check: c, next: [{to: b}]}, {check: d, next: [{to: c}]}]",
        "flows/f.yaml",
    )
    assert isinstance(load_flow("f", tmp_path, two_roles), FlowSpec)


def test_unknown_step_in_outputs_is_reported(tmp_path: Path, write: Write, two_roles: RoleSpecCatalog) -> None:
    path = write("outputs: [look, lok]\nsteps: [{id: look, check: c}]", "flows/f.yaml")
    with pytest.raises(DefinitionError) as caught:
        load_flow("f", tmp_path, two_roles)
    assert message_at(path, caught.value) == 'outputs[1]: unknown step "lok"; did you mean "look"?'
