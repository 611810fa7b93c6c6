from __future__ import annotations

from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.catalog import templates
from codex_multi_role.catalog.flow_expressions import sandbox
from codex_multi_role.catalog.templates import evaluate, render
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.template_types import check_expression, check_template
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.value_types import ANY, ValueType, fields_named
from tests.support.catalogs import problem_of, raised
from tests.support.wrong_values import rows_of

HERE = Place(Path("here"))
_CONTEXT = {
    "goal": "fly",
    "inputs": {"target": "src", "limit": 5},
    "steps": {"plan": {"items": [1, 2], "keys": "k", "visits": 2}},
    "text": "a\nb\n",
    "no": None,
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ inputs.limit }}", 5),
        ("  {{ inputs.limit + 1 }}\n", 6),
        ("{{ steps.plan['items'] }}", [1, 2]),
        ("{{ inputs }}", {"target": "src", "limit": 5}),
        ("{{ goal == 'fly' }}", True),
        ("{{ no }}", None),
        ("{{ '}}' }}", "}}"),
        ("{{ steps.plan['items'] | map('string') }}", ["1", "2"]),
        ("{{ goal | escape }}", "fly"),
        ("{{ inputs.limit }}.", "5."),
        ("{{ goal }} {{ goal }}", "fly fly"),
        ("{{ inputs.limit }}{# why #}", "5"),
        ("<b>{{ goal }}</b> & { x }", "<b>fly</b> & { x }"),
        ("{{ text }}", "a\nb\n"),
        ("{{ '1234567 %*' | indent(2) }}", "1234567 %*"),
        ("{{ '%05.1f' | format(2) }}{{ '%d%%' % 1234567 }}", "002.01234567%"),
        ("{{ '{} {:>4}: 1234567'.format(1234567, goal) }}", "1234567  fly: 1234567"),
        ("{{ '%(who)s: 1234567' | format(who=goal) }}", "fly: 1234567"),
        ("plain\n", "plain\n"),
        ("{{ {'z': \"it's <ü>\", 'a': [1]} | tojson }}", '{"z": "it\'s <ü>", "a": [1]}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("", ""),
        (7, 7),
        ({"a": ["{{ inputs.limit }}", {"b": "x{{ goal }}"}]}, {"a": [5, {"b": "xfly"}]}),
    ],
)
def test_whole_expression_keeps_its_type(template: object, value: object) -> None:
    rendered = render(template, _CONTEXT, "here")
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ steps.plan['items'] }}.", "[1, 2]."),
        ("{{ inputs }}.", '{"target": "src", "limit": 5}.'),
        ("{{ goal == 'fly' }}, {{ no }}, {{ 1.0 }}, {{ 5 }}", "true, null, 1.0, 5"),
        ("{{ ['ä', none] }}.", '["ä", null].'),
        ("{{ steps.plan['items'] | map('string') }}.", '["1", "2"].'),
        ("{{ inputs.items() }}.", '[["target", "src"], ["limit", 5]].'),
        ("{{ steps.plan['items'] | select('odd') | first }}, {{ range(3) }}", "1, [0, 1, 2]"),
        ("{{ goal ~ [goal] ~ none ~ true ~ 7 }}.", 'fly["fly"]nulltrue7.'),
        ("{{ goal ~ '<b>' | escape }}.", "fly&lt;b&gt;."),
        ("{{ [true, [1], goal] | join(', ') }}.", "true, [1], fly."),
        ("{{ [{'a': 1}, {'a': none}] | join('+', attribute='a') }}.", "1+null."),
        ("{{ '%s, %s' % (true, [goal]) }}.", 'true, ["fly"].'),
        ("{{ '%d of %(a)s' }}.", "%d of %(a)s."),
        ("{{ goal }}{{ ',' if goal == 'run' }}{{ '.' if goal ~ ('!' if no) == 'fly' }}", "fly."),
        ("{{ inputs | string }}", '{"target": "src", "limit": 5}'),
        ("{{ day }}, {{ [day] }}", '2026-01-31, ["2026-01-31"]'),
        ("{{ goal.title() }} {{ goal.upper().lower() }}", "Fly fly"),
        ("{{ goal.title is defined }}, {{ goal.title | default('none') }}.", "false, none."),
        ("{% for key, value in inputs.items() %}{{ key }}={{ value }};{% endfor %}", "target=src;limit=5;"),
    ],
)
def test_text_shows_values_as_json(template: str, text: str) -> None:
    assert render(template, {**_CONTEXT, "day": date(2026, 1, 31)}, "here") == text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "items", "a"]), inner),
    max_leaves=8,
)
_READ = st.sampled_from(["x", "x.title", "x.items", "x['a']", "[x]", "{'a':x}", "x.items()", "x.title()", "cycler(x)"])
_MORE = ["map('string')", "map(attribute='title')", "select('string')", "groupby('a')", "join(',')", "batch(2)"]
_MORE += ["default(x)", "replace('a', x)", "format(x)"]
_FILTER = st.sampled_from([*sorted(sandbox().filters), *_MORE])


@given(
    _JSON, _READ, st.lists(_FILTER, max_size=3), st.sampled_from(["{}", "{} ~ x", "'%s' % ({},)", "'{{}}'.format({})"])
)
def test_text_never_shows_an_object_of_python(value: object, read: str, filters: list[str], form: str) -> None:
    """A generator's address once reached a prompt."""
    template = "{{ " + form.format(" | ".join([read, *filters])) + " }}"
    for text in (template, f"Do {template}", f"{{% for y in {template[2:-2]} %}}{{{{ y }}}}{{% endfor %}}"):
        with suppress(DefinitionError):
            rendered = str(render(text, {"x": value}, "here"))
            assert " object at 0x" not in rendered.lower()
            assert "<built-in" not in rendered.lower()
            assert "<bound" not in rendered.lower()


def test_mappings_keys_come_before_its_methods() -> None:
    context = {"steps": MappingProxyType({"items": {"values": [3]}})}
    assert render("{{ steps.items.values }}", context, "here") == [3]
    assert evaluate("steps.items.values | length == 1", context, "here")


@pytest.mark.parametrize(("template", "problem"), rows_of("templates", "template", "fails"))
def test_template_that_fails_says_where(template: str, problem: str) -> None:
    error = raised(DefinitionError, render, template, _CONTEXT, "flow.yaml: steps[0].with.x")
    assert str(error).startswith("flow.yaml: steps[0].with.x: ")
    assert problem in str(error)


def test_what_a_role_said_is_never_a_template() -> None:
    context = {"said": "{{ 7 * 7 }}{% for i in range(9) %}x{% endfor %}", "fields": {"a": "{{ goal }}"}}
    assert render("{{ said }}!", context, "here") == f"{context['said']}!"
    assert render("{{ fields }}", context, "here") == {"a": "{{ goal }}"}
    assert render("{{ '{0.a}'.format(fields) }}", context, "here") == "{{ goal }}"


def test_place_leads_into_lists_and_mappings() -> None:
    with pytest.raises(DefinitionError, match=r'^f: with\.a\[1\]\.b: "x" has no value$'):
        render({"a": [1, {"b": "{{ x }}"}]}, {}, "f: with")
    with pytest.raises(DefinitionError, match=r"^f: with\.a\[1\]\.b: "):
        check_template({"a": [1, {"b": "{{ x"}]}, Place(Path("f"), ("with",)), {})


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("steps.plan.visits >= 2", True),
        ("steps.plan.visits > inputs.limit or goal != 'fly'", False),
        ("'items' in steps.plan", True),
        ("steps.plan.nothing is defined", False),
        ("steps.plan.nothing | default(0) == 0", True),
        ("no", False),
        ("[]", False),
        ("1", True),
        ("{'a': {'b': 1}}", True),
    ],
)
def test_conditions(expression: str, holds: bool) -> None:
    templates.check_expression(expression, HERE)
    assert evaluate(expression, _CONTEXT, "here") is holds


@pytest.mark.parametrize(
    "expression", ["missing", "steps.plan.visit", "no < 1", "1 <", "goal() ", "steps.plan.visits ==="]
)
def test_condition_that_fails_says_where(expression: str) -> None:
    with pytest.raises(DefinitionError, match=r"^here: "):
        evaluate(expression, _CONTEXT, "here")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("stpes.plan.visits", 'here: unknown template name "stpes"; did you mean "steps"?'),
        ("steps.plna.visits", 'here: unknown step "plna"; did you mean "plan"?'),
        ("steps['plna'].visits", 'here: unknown step "plna"; did you mean "plan"?'),
        ("inputs.limits > 1", 'here: unknown input "limits"; did you mean "limit"?'),
        ("goal == 'x' }} {{ y", "here: unexpected text after the expression"),
        ("{{ goal }}", "here: a condition must not contain {{ }}"),
        ("1 +", "here: the expression ends too early"),
        ("", "here: the expression ends too early"),
    ],
)
def test_stale_names_are_found_before_a_run(expression: str, message: str) -> None:
    types = {
        "goal": ANY,
        "inputs": ValueType.of_fields(fields_named(["limit"])),
        "steps": ValueType.of_fields(fields_named(["plan"])),
    }
    assert str(raised(DefinitionError, check_expression, expression, HERE, types)) == message


def test_names_that_exist_or_are_made_in_the_template_pass() -> None:
    types = {"goal": ANY, "steps": ValueType.of_fields(fields_named(["plan"]))}
    check_template("{% for step in range(3) %}{{ step }}{{ goal.x }}{{ steps.plan.y }}{% endfor %}", HERE, types)
    check_expression("goal in range(3)", HERE, types)


@given(st.text())
def test_any_text_is_a_template_or_a_definition_error(text: str) -> None:
    for check in (check_template, check_expression):
        problem = problem_of(partial(check, text, HERE, {}))
        assert not problem or problem.startswith("here: ")


@given(st.text(st.characters(exclude_characters="{}#%", exclude_categories=["Cs"])))
def test_text_without_expressions_stays_as_it_is(text: str) -> None:
    if "\r" not in text:  # Jinja2 writes every line break as \n
        assert render(text, {}, "here") == text
