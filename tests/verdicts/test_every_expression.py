"""The measure of a contract is the template engine: each filter, test and statement, with many values."""

from __future__ import annotations

import json
import re

import pytest

from codex_multi_role.catalog.flow_expressions import sandbox
from codex_multi_role.catalog.templates import render_text
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow import AnswerWays, ExpectedAnswer, new_state
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.state import StepState
from codex_multi_role.reading.json_types import Json
from tests.support.flows import CATALOG, flows_of

TEXT, WORDS, NUMBERS, ROWS = "two words", ["b", "a"], [3, 1], [{"k": "x", "n": 2}, {"k": "y", "n": 1}]
SHAPE = {"k": "x", "n": 2}
VALUES: tuple[object, ...] = (
    TEXT,
    "",
    "7",
    7,
    0,
    1.5,
    True,
    False,
    None,
    WORDS,
    NUMBERS,
    ROWS,
    [],
    [[1, 2]],
    [None],
    [{}],
    SHAPE,
    {},
)
FILTERS = {
    "abs": ("a | abs", 7),
    "attr": ("a | attr('real')", 7),
    "batch": ("a | batch(2) | list", WORDS),
    "default": ("a | default('none')", None),
    "d": ("a | d('none')", None),
    "dictsort": ("a | dictsort", SHAPE),
    "first": ("(a | first).n", ROWS),
    "format": ("'%s' | format(a)", TEXT),
    "groupby": ("a | groupby('k') | map('first') | join", ROWS),
    "items": ("a | items | list", SHAPE),
    "join": ("a | join(', ')", WORDS),
    "last": ("(a | last).n", ROWS),
    "map": ("a | map(attribute='n') | list", ROWS),
    "max": ("(a | max(attribute='n')).k", ROWS),
    "min": ("a | min", NUMBERS),
    "replace": ("a | replace('w', 'v')", TEXT),
    "reject": ("a | reject('gt', 2) | list", NUMBERS),
    "rejectattr": ("a | rejectattr('n', 'gt', 1) | map(attribute='k') | list", ROWS),
    "round": ("a | round", 1.5),
    "select": ("a | select('lt', 7) | list", NUMBERS),
    "selectattr": ("a | selectattr('n') | map(attribute='k') | join", ROWS),
    "slice": ("a | slice(2) | list", WORDS),
    "sort": ("a | sort(attribute='n') | map(attribute='k') | join", ROWS),
    "sum": ("a | sum(attribute='n')", ROWS),
    "unique": ("a | unique | list", WORDS),
    "xmlattr": ("a | xmlattr", SHAPE),
    **{name: (f"a | {name}", WORDS) for name in ("count", "length", "list", "reverse")},
    **{name: (f"a | {name}", 7) for name in ("filesizeformat", "float", "int")},
}
"""A template of ``a`` and a natural value for it; a filter that is not here takes a text."""
TESTS = {
    "divisibleby": ("a is divisibleby(2)", 7),
    "sameas": ("a is sameas(none)", None),
    "in": ("a is in(['x', 'two words'])", TEXT),
    **{name: (f"a is {name}", 7) for name in ("even", "odd")},
    **{name: (f"a is {name}(3)", 7) for name in ("ge", "greaterthan", "gt", "le", "lessthan", "lt")},
    **{name: (f"a is {name}('x')", TEXT) for name in ("eq", "equalto", "ne")},
}  # fmt: skip
SIGNS = {"<", "<=", ">", ">=", "==", "!="}
STATEMENTS = {
    "if": ("{% if a %}{{ a }}{% elif a is defined %}-{% else %}none{% endif %}.", TEXT),
    "for": ("{% for x in a if x.n > 1 %}{{ loop.index }}{{ x.k }}{% else %}none{% endfor %}.", ROWS),
    "recursive for": ("{% for x in a recursive %}{{ x.k }}{{ loop(x.c) if x.c is defined }}{% endfor %}.", ROWS),
    "for pairs": ("{% for k, v in a.items() %}{{ k }}{{ v }}{% endfor %}.", SHAPE),
    "for slice": ("{% for x in a[:1] %}{{ x.k }}{% endfor %}.", ROWS),
    "set": ("{% set x = a %}{{ x.n + 1 }}", SHAPE),
    "set block": ("{% set x %}{{ a }}{% endset %}{{ x }}", TEXT),
    "macro": ("{% macro of(x) %}{{ x.k }}{% endmacro %}{{ of(a) }}", SHAPE),
    "call": ("{% macro of(x) %}{{ caller() }}{% endmacro %}{% call of(1) %}{{ a.k }}{% endcall %}", SHAPE),
    "with": ("{% with x = a.n %}{{ x - 1 }}{% endwith %}", SHAPE),
    "filter": ("{% filter upper %}{{ a }}{% endfilter %}", TEXT),
    "namespace": ("{% set y = namespace(n=0) %}{% for x in a %}{% set y.n = y.n + x.n %}{% endfor %}{{ y.n }}", ROWS),
    "comparison": ("{{ 1 < a <= 9 }}", 7),
    "equality": ("{{ a == 'two words' }}", TEXT),
    "among": ("{{ a in ['x', 'two words'] }}", TEXT),
    "contains": ("{{ 'two' in a }}", TEXT),
    "arithmetic": ("{{ a * 2 - 1 }} {{ -a }} {{ a // 2 }} {{ a % 3 }} {{ a ** 2 }}", 7),
    "plus": ("{{ 'x' + a }}", TEXT),
    "lists": ("{{ [1] + a }}", NUMBERS),
    "tilde": ("{{ 'x' ~ a }}", 7),
    "or": ("{{ a or 'none' }}", None),
    "and": ("{{ a and a.k }}", SHAPE),
    "not": ("{{ not a }}", True),
    "choice": ("{{ a.n if a.k == 'x' else a.m }}", SHAPE),
    "index": ("{{ a[0].k }}{{ a[-1].n }}", ROWS),
    "key": ("{{ a['k'] }}", SHAPE),
    "method": ("{{ a.split()[0] }}{{ a.upper() }}", TEXT),
    "get": ("{{ a.get('m', 1) }}", SHAPE),
    "percent": ("{{ '%s of %d' % (a.k, a.n) }}", SHAPE),
    "range": ("{% for _ in range(a) %}x{% endfor %}.", 7),
}  # fmt: skip


def _cases() -> dict[str, tuple[str, object]]:
    filters = {name: FILTERS.get(name, (f"a | {name}", TEXT)) for name in sorted(sandbox().filters)}
    tests = {name: TESTS.get(name, (f"a is {name}", TEXT)) for name in sorted(sandbox().tests.keys() - SIGNS)}
    told = {**filters, **{f"is {name}": each for name, each in tests.items()}}
    return {name: ("{{ " + text + " }}.", value) for name, (text, value) in told.items()} | STATEMENTS


CASES = _cases()


def _expected(template: str) -> tuple[ExpectedAnswer, Json]:
    work = json.dumps({"id": "work", "ask": "developer", "prompt": template})
    flows = flows_of(x=f"steps: [{{id: plan, ask: planner}}, {work}]")
    ways = AnswerWays(Contracts(flows, "x", CATALOG.roles))
    state = new_state(flows["x"], "reach it", {}, 1)
    state.enter("plan")
    return ways.expected("x", flows["x"].steps[0], CATALOG.role("planner"), state.context()), state.context()


def _can_fill(template: str, context: Json, answer: Json) -> bool:
    seen = StepState(True, 1, "done", output=answer).seen()
    try:
        render_text(template, {**context, "steps": {**context["steps"], "plan": seen}}, "prompt")
    except DefinitionError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_contract_accepts_what_the_engine_can_evaluate(name: str) -> None:
    """What it accepts can be filled in, and the natural value, which can, is accepted."""
    text, natural = CASES[name]
    template = re.sub(r"(?<![\w'.])a(?![\w'(])", "steps.plan.a", text)
    expected, context = _expected(template)
    for answer in ({}, *({"a": each} for each in VALUES)):
        if not expected.problems(answer):
            assert _can_fill(template, context, answer), f"{template} fails with {json.dumps(answer)}"
    assert _can_fill(template, context, {"a": natural})
    assert expected.problems({"a": natural}) == []
