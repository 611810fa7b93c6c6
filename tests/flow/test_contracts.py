"""What a role must answer, in words and beside its schema; `verdicts/wrong_values.yaml` has what templates need."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role.catalog.explorations import ITEM, path_text
from codex_multi_role.flow.answer_requirements import (
    Contract,
    FieldRequirement,
    beside,
    in_words,
    lacking,
    misused,
    not_required_by,
    removable_nulls,
    sent_schema,
    with_contract,
)
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.reading.json_types import Json
from tests.support.console import Completed, console
from tests.support.flows import CATALOG, flow_of


def _contract(steps: str, step: str = "plan", role: str = "planner", more: str = "") -> Contract:
    flow = flow_of(f"steps: [{steps}]{more and chr(10)}{more}")
    return Contracts({"x": flow}, "x", CATALOG.roles, ["web_searches"]).of("x", step, role)


def _said(contract: Contract) -> list[str]:
    """``tasks! array<=3``: required, its type, its bound; ``?``: null will do; ``~``: decided by the value alone."""
    return [
        f"{path_text(need.path)}{'!' * need.is_required}{'?' * need.takes_null}{'~' * need.is_decided} "
        f"{need.type}{f'<={need.most}' if need.most else ''}".rstrip()
        for need in contract
    ]


PLAN = "{id: plan, ask: planner}"
FAN = """{id: work, ask: developer, for_each: {items: "{{ steps.plan.tasks }}", as: task, max_items: 1},
         prompt: "{{ task.title }}."}"""


def test_role_that_may_end_the_run_leaves_out_what_follows() -> None:
    roles = [
        role.model_copy(update={"behaviors": role.behaviors.model_copy(update={"can_finish": True})})
        for role in CATALOG.roles
    ]
    flow = flow_of("""steps: [{id: plan, ask: planner}, {id: work, ask: developer},
        {id: last, ask: reader, with: {a: "{{ steps.plan.a }}", b: "{{ steps.work.b }}"}}]""")
    contracts = Contracts({"x": flow}, "x", roles)
    assert _said(contracts.of("x", "plan", "planner")) == []
    assert _said(contracts.of("x", "work", "developer")) == ["b!?"]


def test_default_of_a_field_is_read_as_what_its_schema_says() -> None:
    fields = (
        "a: {type: array, default: '{{ steps.plan.a }}'}, b: {default: [1, '{{ steps.plan.b }}']}, c: {type: string}"
    )
    review = f"{{id: ok, review: {{question: Good, fields: {{{fields}, d: {{type: 'null', default: null}}}}}}}}"
    assert _said(_contract(f"{PLAN}, {review}")) == ["a! array", "b!?"]


def test_every_role_of_a_team_says_what_is_read_of_it() -> None:
    every = '{id: team, ask: "*", next: [{when: "roles.reader.done", end: good}]}'
    assert _said(_contract(every, "team", "reader")) == ["done!?~"]
    assert _said(_contract(every, "team", "planner")) == []


def test_what_the_schema_of_the_author_says_is_left_to_it() -> None:
    contract = _contract(f"{PLAN}, {FAN}")
    title = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}
    array, tasks = {"type": "array"}, {"type": "array", "maxItems": 9, "items": title}
    assert _said(beside(contract, {"properties": {"tasks": {}}})) == _said(contract)
    assert _said(beside(contract, {"properties": {"tasks": array}})) == [
        "tasks!? <=1",  # a list that is always walked through is never longer
        "tasks[] object",
        "tasks[].title!",
    ]
    closed = {"required": ["tasks"], "properties": {"tasks": tasks}}
    assert _said(beside(contract, closed)) == ["tasks!?", "tasks[].title!?"]
    assert not_required_by(closed, beside(contract, closed)) == ()

    flow = flow_of(f"steps: [{PLAN}, {FAN}]")
    planner = CATALOG.role("planner").model_copy(update={"output_schema": closed})
    contracts, plan = Contracts({"x": flow}, "x", CATALOG.roles), flow.step("plan")
    assert contracts.for_ask("x", plan, planner) == ()
    own = plan.model_copy(update={"reply": {"type": "object"}})  # stands in for that of the role
    assert contracts.for_ask("x", own, planner) == contract


def test_number_has_no_length() -> None:
    contract = _contract(f'{PLAN}, {{id: work, ask: developer, prompt: "{{{{ steps.plan.a | length }}}}"}}')
    right: list[object] = [[], "text", {}]
    assert [misused(contract, {"a": each}) for each in right] == [[], [], []]
    assert misused(contract, {"a": 7}) == ['"a" must be a list or a text, not a number: step work reads it']


def test_problem_names_the_field_and_who_reads_it() -> None:
    contract = _contract(f"{PLAN}, {FAN}")
    assert [*lacking(contract, {"tasks": [{"title": "x"}]}), *misused(contract, {"tasks": [{"title": "x"}]})] == []
    assert lacking(contract, {"tasks": [{}, "b"]}) == [
        '"tasks" has 2 elements, more than 1: step work walks through it',
        '"tasks[0].title" is missing: step work reads it',
    ]
    assert misused(contract, {"tasks": [{}, "b"]}) == [
        "\"tasks[1]\" must be an object, not a text, 'b': step work reads it",
    ]


def test_words_are_for_people_and_small_models() -> None:
    fan = """{id: work, ask: developer, for_each: {items: "{{ steps.plan.tasks }}", as: task, max_items: 3},
         prompt: "{% if steps.plan.note %}{{ steps.plan.note }}{% endif %} {{ task.title }} {{ task.size + 1 }}",
         next: [{when: steps.plan.ok, end: good}]}"""
    contract = _contract(f"{PLAN}, {fan}")
    assert in_words(contract).splitlines() == [
        "- tasks: a list of at most 3 elements, required (step work walks through it)",
        "- tasks[].title: required (step work reads it)",
        "- tasks[].size: a number, required (step work reads it)",
        "- ok: true or false, required (step work decides by it)",
        'In outline: {"tasks": [{"title": …, "size": 0}], "ok": true}',
    ]
    assert "In outline" not in in_words(contract[:3])


def test_text_that_counts_as_true_is_asked_again_only_where_it_decides() -> None:
    decided = _contract('{id: plan, ask: planner, next: [{when: "steps.plan.note", end: good}, {end: bad}]}')
    assert misused(decided, {"note": "no"}) != []
    tested = _contract(f'{PLAN}, {{id: work, ask: developer, prompt: "{{% if steps.plan.note %}}x{{% endif %}}"}}')
    assert misused(tested, {"note": "no"}) == []


def test_null_is_missing_where_a_field_may_be_missing() -> None:
    template = "{% if steps.plan.a is defined %}{{ steps.plan.a + 1 }}{% endif %}{% if steps.plan.b %}x{% endif %}"
    loop = "{% for x in steps.plan.l %}{{ (x.n | default(0)) > 1 }}{% endfor %}"
    contract = _contract(f'{PLAN}, {{id: work, ask: developer, prompt: "{template}{loop}"}}')
    answer = {"a": None, "b": None, "l": [{"n": 1}, {"n": None}, {}]}
    assert removable_nulls(contract, answer) == [("a",), ("l", 1, "n")]
    author = {"properties": {"a": {"type": ["number", "null"]}}}
    assert removable_nulls(beside(contract, author), answer) == [("l", 1, "n")]


CLOSED = {"type": "object", "additionalProperties": False, "required": ["a"]}
TASKS = CLOSED | {"properties": {"a": {"type": "string"}, "tasks": {"type": "array"}}}
CONTRACT = (
    FieldRequirement(("tasks",), is_required=True),
    FieldRequirement(("tasks", ITEM), type="object"),
    FieldRequirement(("tasks", ITEM, "title"), is_required=True),
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
