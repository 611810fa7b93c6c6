"""Random templates and conditions: every filter and test of the sandbox, its operators, methods and statements."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from codex_multi_role.catalog.flow_expressions import sandbox

ARGUMENTS = {
    **dict.fromkeys(("default", "d"), "'-'"),
    **dict.fromkeys(("attr", "groupby"), "'t'"),
    **dict.fromkeys(("selectattr", "rejectattr"), "'ok'"),
    **dict.fromkeys(("batch", "slice", "divisibleby", "format"), "2"),
    **dict.fromkeys(("eq", "equalto", "ne", "ge", "greaterthan", "gt", "le", "lessthan", "lt"), "3"),
    **dict.fromkeys(("filter", "test"), "'upper'"),
    **{"map": "attribute='t'", "select": "'lt', 7", "reject": "'none'", "sum": "attribute='n'", "sameas": "true"},
    **{"join": "', '", "replace": "'a', 'b'", "in": "['x', 1]", "truncate": "3", "max": "attribute='n'"},
}
"""Those of filters and tests that need some, or are more telling with them."""
FILTERS = [f"{{}} | {name}({ARGUMENTS.get(name, '')})" for name in sorted(sandbox().filters)]
TESTS = [f"{{}} is {name}({ARGUMENTS.get(name, '')})" for name in sorted(sandbox().tests) if name.isidentifier()]
LITERALS = ("1", "3", "2.5", "'x'", "true", "none", "['x', 'y']", "Q", "Q", "Q")
SIGNS = ("+", "-", "*", "/", "//", "%", "**", "~", "<", "<=", ">", ">=", "==", "!=", "in", "not in", "and", "or")
OPERATIONS = [form.format(sign) for sign in SIGNS for form in ("{{}} {} L", "L {} {{}}")]
PARTS = ("t", "t.u", "ok", "split(',')[0]", "items() | list", "get('t')", "values() | list", "upper()")
MORE = [*(f"{{}}.{part}" for part in PARTS), "{}[0]", "{}[-1]", "{}[:2]", "{}[Q]", "not {}", "{} if Q else 0"]
USUAL = ("{} >= 3", "{} == 'x'", "{} is defined", "{} | length", "{} + 1", "{} | default(0)", "{}.t", "not {}")
STATEMENTS = (
    *("Do {{ E }}.",) * 5,
    *("{{ E }}", "{% if E %}{{ Q }}{% endif %}", "{% if E %}-{% else %}{{ P }}{% endif %}"),
    *("{% for x in E %}{{ x.t }}, {% endfor %}", "{% for x in E if x.ok %}{{ x.t }}{% endfor %}"),
    *("{% set y = E %}{{ y.t }}", "{% macro m(x) %}{{ x.t }}{% endmacro %}{{ m(E) }}", "{{ E }} of {{ Q }}"),
    "{% for g in E | groupby('t') %}{{ g.grouper }}{% endfor %}",
    "{% for b in E | batch(2) %}{{ b[0].t }}{% endfor %}",
)  # fmt: skip
EXACT_STATEMENTS = (
    "Do {{ P }}.",
    "Do {{ P.t.u }} of {{ P.n + 1 }}.",
    "Do {{ P.t + 1 }} of {{ P.n * 2 }}, {{ P.m - 1 }}.",
    "{% for x in P %}{{ x.t }}, {% endfor %}.",
    "{% set x = P %}Do {{ x.t }}.",
    "{% macro m(x) %}{{ x.t > 3 }}{% endmacro %}Do {{ m(P) }}.",
    "Do {{ (P | first).t }} and {{ (P | last).u }}.",
    "Do {{ 'x' + P }}.",
    "Do {{ P | select('lt', 7) | list }}.",
    "Do {% for g in P | groupby('k.u') %}{{ g.list | map(attribute='t') | join }}{% endfor %}.",
    "Do {% for b in P | batch(2) %}{% for x in b %}{{ x.t }}{% endfor %}{% endfor %}.",
    "Do {% if P is defined %}{% for x in P %}{{ x.t.u }}{% endfor %}{% endif %}.",
    "Do {{ P | default('-') }}.",
    "Do {{ P | join(', ') }}.",
    "{{ P | map(attribute='t') | join(', ') }}.",
)
"""Those that can be filled in with every answer that satisfies their contract, where nothing else reads the path."""
EXACT_CONDITIONS = (
    "P >= 3",
    "P == 'x'",
    "not P",
    "P | selectattr('ok') | list",
    "P | selectattr('ok') | list | length > 1",
)


def text(draw: st.DrawFn, paths: Sequence[str], *, exact: bool) -> str:
    """A template that reads some of ``paths``; ``exact``: one of `EXACT_STATEMENTS`."""
    form = draw(st.sampled_from(EXACT_STATEMENTS if exact else STATEMENTS))
    return _filled(draw, form if exact else form.replace("E", _expression(draw, 2)), paths)


def condition(draw: st.DrawFn, paths: Sequence[str], *, exact: bool) -> str:
    """Likewise, for a ``when``."""
    return _filled(draw, draw(st.sampled_from(EXACT_CONDITIONS)) if exact else _expression(draw, 3), paths)


def _expression(draw: st.DrawFn, longest: int) -> str:
    value = "P"
    for _ in range(draw(st.integers(0, longest))):
        form = draw(st.sampled_from(draw(st.sampled_from([USUAL, USUAL, USUAL, FILTERS, TESTS, OPERATIONS, MORE]))))
        value = form.format(value if value == "P" else f"({value})").replace("L", draw(st.sampled_from(LITERALS)))
    return value


def _filled(draw: st.DrawFn, form: str, paths: Sequence[str]) -> str:
    """With paths instead of ``P`` and ``Q``, each the same everywhere."""
    chosen = {name: draw(st.sampled_from(paths)) for name in "PQ"}
    return re.sub(r"\b[PQ]\b", lambda found: chosen[found[0]], form)
