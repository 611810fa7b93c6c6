"""What a role must answer follows from the templates of its flow, on every way onwards."""

from __future__ import annotations

import pytest

from codex_multi_role.catalog.value_uses import path_text
from codex_multi_role.flow.answer_needs import (
    Contract,
    beside,
    in_words,
    lacking,
    misused,
    needless_nulls,
    not_required_by,
)
from codex_multi_role.flow.contracts import Contracts
from tests.support.flows import CATALOG, flow_of, flows_of


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
FAN = """{id: work, ask: developer, for_each: "{{ steps.plan.tasks }}", as: task, max_items: 1,
    prompt: "{{ task.title }}."}"""


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ steps.plan.a }}", ["a!?"]),
        ("Do {{ steps.plan.a }}.", ["a!"]),
        ("Do {{ steps['plan']['a'] }} {{ roles.planner.b }}.", ["a!", "b!"]),
        ("Do {{ steps.plan.handoff.status }} {{ steps.plan.status }} {{ steps.plan.visits }}.", ["status!"]),
        ("Do {{ steps.plan.web_searches }} {{ steps.plan }}.", []),
        ("Do {{ steps.plan.a.b }}.", ["a! object", "a.b!"]),
        ("Do {{ steps.plan.a | default('-') }}.", []),
        ("Do {{ steps.plan.a.b | default('-') }}.", ["a!? object"]),
        ("Do {{ (steps.plan.a | default(1)) > 2 }}.", ["a? number"]),
        (
            "Do {{ steps.plan.a + 1 }} {{ steps.plan.b - inputs.x }} {{ -steps.plan.c }}.",
            ["a! number", "b! number", "c! number"],
        ),
        ("Do {{ steps.plan.a | join(', ') }} {{ steps.plan.b | length }}.", ["a! array", "a[]", "b! countable"]),
        ("Do {{ steps.plan.a.split() }} {{ steps.plan.b.items() }}.", ["a! string", "b! object"]),
        ("{% if steps.plan.a is defined %}{{ steps.plan.a }}{% endif %}", []),
        ("{% if steps.plan.a %}{{ steps.plan.b + 1 }}{% endif %}", ["a!?", "b? number"]),
        (
            "{% for x in steps.plan.a %}{{ x.b }}{{ x.c.d }}{% endfor %}",
            ["a! array", "a[] object", "a[].b!", "a[].c! object", "a[].c.d!"],
        ),
        (
            "{% for x in steps.plan.a if x.ok %}{{ x.b > 1 }}{% endfor %}",
            ["a! array", "a[] object", "a[].ok!?", "a[].b? number"],
        ),
        ("{% for x in steps.plan.a[:2] %}{{ x.b }}{% endfor %}", ["a! array", "a[]? object"]),
        ("{% for k, v in steps.plan.a.items() %}{{ k }}{% endfor %}", ["a! object"]),
        ("{% for k in steps.plan.a %}{{ steps.plan.a[k] }}{% endfor %}", ["a!", "a[]"]),
        ("{% set x = steps.plan.a %}{{ x.b + 1 }}", ["a! object", "a.b! number"]),
        ("{{ steps.plan.a | map(attribute='b.c') | list }}", ["a!? array", "a[] object", "a[].b! object", "a[].b.c!?"]),
        ("{{ steps.plan.a | selectattr('b') | map(attribute='c') | list }}", ["a!? array", "a[] object", "a[].b!?"]),
        ("{{ steps.plan.a | selectattr('b', 'ge', 3) | list }}", ["a!? array", "a[] object", "a[].b! number"]),
        ("{{ steps.plan.a | selectattr('b', 'defined') | list }}", ["a!? array"]),
        ("{{ steps.plan.a[0].b }}", ["a! array", "a[0]! object", "a[0].b!?"]),
        ("{{ (steps.plan.a | first).b + 1 }}", ["a! array", "a[0]! object", "a[0].b! number"]),
        ("{{ steps.plan.a if steps.plan.a is mapping else {} }}", []),
        ("{{ steps.plan.a and steps.plan.b > 1 }}", ["a!?", "b? number"]),
        ("{{ steps.plan.a | select('lt', 7) | list }}", ["a!? array", "a[] number"]),
        ("{{ steps.plan.a | reject('in', ['x']) | list }}", ["a!? array", "a[] string"]),
        ("{{ steps.plan.a | map('upper') | list }}.", ["a!? array", "a[]"]),
        ("{{ steps.plan.a | sort(attribute='b,c') | length }}.", ["a! array", "a[] object", "a[].b!?", "a[].c!?"]),
        (
            "{% for x in steps.plan.a | groupby('b') %}{{ x.grouper }} {{ x.list | map(attribute='c') }}{% endfor %}",
            ["a! array", "a[] object", "a[].b!?", "a[].c!"],
        ),
        ("{% for x in steps.plan.a | batch(2) %}{{ x[0].b }}{% endfor %}", ["a! array", "a[]? object"]),
        ("{{ (steps.plan.a | max(attribute='b')).c }}", ["a! array", "a[] object", "a[].b!?"]),
        ("{{ (steps.plan.a | last).b }}.", ["a! array", "a[-1]! object", "a[-1].b!"]),
        ("{{ 'x' + steps.plan.a }} {{ 'x' ~ steps.plan.b }}", ["a! string", "b!"]),
        ("{{ steps.plan.a + steps.plan.b }}.", ["a!?", "b!?"]),
        ("{% set x = steps.plan.a | first %}{{ x.b }}", ["a! array", "a[0]! object", "a[0].b!"]),
        ("{% macro m(x) %}{{ x.b > 1 }}{% endmacro %}{{ m(steps.plan.a) }}", ["a! object", "a.b! number"]),
        (
            "{% if steps.plan.a is defined %}{% for x in steps.plan.a %}{{ x.b }}{% endfor %}{% endif %}",
            ["a? array", "a[] object", "a[].b!"],
        ),
        (
            "{% for x in steps.plan.a %}{% if loop.first %}{{ x.b + 1 }}{% endif %}{% endfor %}",
            ["a! array", "a[]? object", "a[].b? number"],
        ),
        ("{% if steps.plan.a is not none %}{{ steps.plan.a }}{% endif %}", ["a!?"]),
        ("{% if steps.plan.status == 'done' and steps.plan.visits %}{{ steps.plan.a }}{% endif %}", ["a!"]),
        ("{% if steps.plan.visits > 1 %}{{ steps.plan.a + 1 }}{% endif %}", ["a? number"]),
        ("{{ 'x' in steps.plan.a }} {{ steps.plan.b in 'x, y' }}", ["a! countable", "b! string"]),
        ("{{ steps.plan.a[:7] }} {{ ', '.join(steps.plan.b) }} {{ '%.2f' % steps.plan.c }}", ["a!", "b! array", "c!"]),
    ],
)
def test_template_says_what_it_needs(template: str, said: list[str]) -> None:
    contract = _contract(f"{PLAN}, {{id: work, ask: developer, prompt: {template!r}}}")
    assert _said(contract) == said


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("steps.plan.ok", ["ok!?~"]),
        ("not steps.plan.ok", ["ok!?~"]),
        ("steps.plan.ok == true", ["ok! boolean"]),
        ("steps.plan.n > 3", ["n! number"]),
        ("3 == steps.plan.n", ["n! number"]),
        ("steps.plan.n >= inputs.most", ["n! number"]),
        ("steps.plan.n >= inputs.word", ["n! string"]),
        ("steps.plan.kind == 'bug'", ["kind! string"]),
        ("steps.plan.kind in ['bug', 'question']", ["kind! string"]),
        ("steps.plan.kind == 'bug' or steps.plan.kind == 3", ["kind!"]),
        ("steps.plan.ok and steps.plan.n > 3", ["ok!?~", "n? number"]),
        ("steps.plan.n is defined and steps.plan.n > 3", ["n? number"]),
        ("steps.plan.tasks | length > 3", ["tasks! countable"]),
    ],
)
def test_condition_says_what_it_needs(when: str, said: list[str]) -> None:
    step = f'{{id: plan, ask: planner, next: [{{when: "{when}", end: good}}, {{end: bad}}]}}'
    assert _said(_contract(step, more="inputs: {most: 4, word: x}")) == said


def test_items_of_a_fan_out_type_the_list() -> None:
    fan = """{id: work, ask: developer, for_each: "{{ steps.plan.tasks }}", as: task, max_items: 3,
        needs: "{{ task.after }}\""""
    said = ["tasks! array<=3", "tasks[] object", "tasks[].after! array", "tasks[].title!"]
    assert _said(_contract(f'{PLAN}, {fan}, prompt: "Do {{{{ task.title }}}}."}}')) == said
    plain = fan[: fan.index(", max_items")] + ", max_items: 3"
    guarded = plain.replace("tasks }}", "tasks | default([]) }}")
    assert _said(_contract(f"{PLAN}, {guarded}}}")) == ["tasks? array<=3"]
    fewer = plain.replace("tasks }}", "tasks | rejectattr('done') | list }}")
    assert _said(_contract(f"{PLAN}, {fewer}}}")) == ["tasks!? array", "tasks[] object", "tasks[].done!?~"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for x in steps.plan.results %}{{ x.title }} {{ x.error }}{{ x.index }}{% endfor %}", ["title!"]),
        ("{% for x in steps.plan.results if x.status == 'done' %}{{ x.title }}{% endfor %}", ["title!"]),
        ("{{ steps.plan.results | selectattr('bad') | map(attribute='why') | join }}.", []),
        ("{{ steps.plan.results | rejectattr('bad') | map(attribute='why') | join }}.", ["why!"]),
        ("{% for x in steps.plan.results %}{{ x.role }} {{ x.copy }} {{ x.handoff.role }}{% endfor %}", ["role!"]),
        ("{% for x in steps.plan.results if x.role == 'planner' %}{{ x.a }}{% else %}{{ x.b }}{% endfor %}", ["a!"]),
        ("{% for x in steps.plan.results if x.role != 'planner' %}{{ x.a }}{% endfor %}", []),
        (
            "{{ steps.plan.failed }} {{ steps.plan.results | length }} {{ steps.plan.by_role.planner.title }}.",
            ["title!"],
        ),
        ("{{ steps.plan.results | max(attribute='score') }}.", ["score!?"]),
        ("{% for role, x in steps.plan.by_role.items() %}{{ role }} {{ x.title }}{% endfor %}", ["title!"]),
    ],
)
def test_what_the_engine_adds_is_asked_of_no_role(template: str, said: list[str]) -> None:
    panel = "{id: plan, ask: [planner, reader], isolate: worktree, merge: none}"
    assert _said(_contract(f"{panel}, {{id: work, ask: developer, prompt: {template!r}}}")) == said


def test_until_says_what_it_needs() -> None:
    until = "results | selectattr('score', 'ge', 8) | list"
    steps = f'{{id: plan, ask: planner, for_each: [a, b], until: "{until}"}}, {{id: work, ask: developer}}'
    assert _said(_contract(steps)) == ["score! number"]


def test_path_is_required_only_if_every_way_reads_it() -> None:
    work = '{id: work, ask: developer, with: {a: "{{ steps.plan.a }}"}}'
    some = '{id: plan, ask: planner, next: [{when: "cycle > 1", end: enough}, {to: work}]}'
    assert _said(_contract(f"{some}, {work}")) == []
    last = some.replace('[{when: "cycle > 1", end: enough}', '[{when: "cycle > 1", to: last}')
    assert _said(_contract(f"{last}, {work}, {work.replace('work', 'last')}")) == ["a!?"]


def test_later_conditions_are_read_only_if_the_earlier_ones_are_false() -> None:
    first = (
        '{id: plan, ask: planner, next: [{when: "steps.plan.a", end: a}, {when: "steps.plan.n > 1", end: b}, {end: c}]}'
    )
    assert _said(_contract(first)) == ["a!?~", "n? number"]


def test_way_back_to_the_step_ends_its_answer() -> None:
    loop = """{id: plan, ask: planner, max_visits: 3},
        {id: check, check: tests, next: [{when: "steps.check.failed", to: plan}]},
        {id: work, ask: developer, with: {a: "{{ steps.plan.a }}"}}"""
    assert _said(_contract(loop)) == []
    own_prompt = loop.replace(
        "max_visits: 3", "max_visits: 3, prompt: \"{{ steps.plan.a | default('') }}{{ steps.plan.b }}\""
    )
    assert _said(_contract(own_prompt)) == []


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


def test_latest_answer_of_a_role_is_that_of_its_only_step() -> None:
    reads = '{id: last, ask: reader, prompt: "{{ roles.planner.a }}."}'
    assert _said(_contract(f"{PLAN}, {reads}")) == ["a!"]
    assert _said(_contract(f"{PLAN}, {{id: again, ask: planner}}, {reads}")) == []
    every = '{id: team, ask: "*", next: [{when: "roles.reader.done", end: good}]}'
    assert _said(_contract(every, "team", "reader")) == ["done!?~"]
    assert _said(_contract(every, "team", "planner")) == []


def test_caller_reads_the_steps_of_the_flow_that_it_calls() -> None:
    flows = flows_of(
        x="""steps: [{id: sub, call: inner, for_each: [1, 2]},
            {id: last, ask: reader, prompt: "{% for x in steps.sub.results %}{{ x.steps.plan.text }}{% endfor %}"}]""",
        inner="steps: [{id: plan, ask: planner}]",
    )
    assert _said(Contracts(flows, "x", CATALOG.roles).of("inner", "plan", "planner")) == ["text!"]
    assert _said(Contracts(flows, "inner", CATALOG.roles).of("inner", "plan", "planner")) == []


@pytest.mark.parametrize(
    ("given", "inputs", "prompt", "said"),
    [
        (
            "{{ steps.plan.tasks }}",
            "{type: list}",
            "{% for x in inputs.tasks %}{{ x.name }}{% endfor %}",
            ["tasks! array", "tasks[] object", "tasks[].name!"],
        ),
        (
            "{{ steps.plan.tasks }}",
            "{type: mapping}",
            "{{ inputs.tasks.name > 3 }}.",
            ["tasks! object", "tasks.name! number"],
        ),
        (
            "{{ steps.plan.tasks | default([]) }}",
            "{type: list}",
            "{% for x in inputs.tasks %}{{ x.name }}{% endfor %}",
            ["tasks? array", "tasks[] object", "tasks[].name!"],
        ),
        ("{{ steps.plan.tasks }}", "{type: string}", "{{ goal }}.", ["tasks! string"]),
        ("About {{ steps.plan.tasks }}", "{type: string}", "{{ inputs.tasks }}.", ["tasks!"]),
        (
            "{{ steps.plan.a | selectattr('ok') | list }}",
            "{type: list}",
            "{% for x in inputs.tasks %}{{ x.name }}{% endfor %}",
            ["a!? array", "a[] object", "a[].ok!?"],
        ),
    ],
)
def test_called_flow_says_what_it_needs_of_its_inputs(given: str, inputs: str, prompt: str, said: list[str]) -> None:
    flows = flows_of(
        x=f"steps: [{PLAN}, {{id: sub, call: inner, with: {{tasks: {given!r}}}}}]",
        inner=f"inputs: {{tasks: {inputs}}}\nsteps: [{{id: do, ask: developer, prompt: {prompt!r}}}]",
    )
    assert _said(Contracts(flows, "x", CATALOG.roles).of("x", "plan", "planner")) == said


def test_list_that_one_way_reads_has_what_that_way_reads_of_its_elements() -> None:
    some = '{id: plan, ask: planner, next: [{when: "cycle > 1", end: enough}, {to: work}]}'
    assert _said(_contract(f"{some}, {FAN}")) == ["tasks? array<=1", "tasks[] object", "tasks[].title!"]


def test_result_of_the_flow_requires_nothing() -> None:
    assert _said(_contract(PLAN, more='result: {title: T, text: "{{ steps.plan.text }}"}')) == []


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
    fan = """{id: work, ask: developer, for_each: "{{ steps.plan.tasks }}", as: task, max_items: 3,
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
    assert needless_nulls(contract, answer) == [("a",), ("l", 1, "n")]
    author = {"properties": {"a": {"type": ["number", "null"]}}}
    assert needless_nulls(beside(contract, author), answer) == [("l", 1, "n")]
