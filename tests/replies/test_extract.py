from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.replies.extract import MAX_DEPTH, find_object

# Strings full of what a careless extractor trips over.
NASTY = st.text(alphabet=st.sampled_from('{}[]"`\\,: \nabé\U0001f600'), max_size=20) | st.text(max_size=10)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NASTY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NASTY, JSON_VALUES, min_size=1, max_size=4)
PROSE = st.text(alphabet=st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=60)
SURROUNDINGS = st.sampled_from(
    [
        ("", ""),
        ("```json\n", "\n```"),
        ("```\n", "\n```\nHope that helps!"),
        ("\ufeff", ""),
        ("Use {name} and {other}:\n\n", "\nas in `{name}`."),
        ("returns `{}` by default. ", ""),
        ('Not {"a" and "b"}, nor {"x": 1,}, but ', ""),
        ("", '\n{"second": "object"}'),
    ]
)


@given(OBJECTS, SURROUNDINGS, PROSE, PROSE, st.sampled_from([None, 2]))
def test_any_object_comes_back_equal_from_prose_and_fences(
    value: dict[str, object], around: tuple[str, str], before: str, after: str, indent: int | None
) -> None:
    text = before + around[0] + json.dumps(value, ensure_ascii=False, indent=indent) + around[1] + after
    assert find_object(text).value == value


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    found = find_object(text)
    assert (found.value is None) == bool(found.problem)


@given(OBJECTS, st.data())
def test_a_cut_off_object_never_yields_one_of_its_parts(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps({"outer": value})
    cut = data.draw(st.integers(min_value=10, max_value=len(text) - 1))
    assert find_object(text[:cut]).value is None


@pytest.mark.parametrize(
    "content",
    [
        "```python\nprint('x')\n```",
        "a `name` and ``two``",
        "if (a) { b(); } else { c();",
        'say \\"hi\\" {',
        "}}}",
        'C:\\path\\"',
    ],
)
def test_strings_keep_their_backticks_and_braces(content: str) -> None:
    """The original stripped backticks from values and counted braces inside strings."""
    value = {"files": [{"path": "a.py", "content": content}], "summary": content}
    assert find_object(f"Here:\n```json\n{json.dumps(value)}\n```\nDone.").value == value


def test_the_first_of_several_objects_wins() -> None:
    assert find_object('{"a": 1} {"b": 2}').value == {"a": 1}
    assert find_object('[{"a": 1}, {"b": 2}]').value == {"a": 1}


def test_an_object_that_parses_beats_a_damaged_one_before_it() -> None:
    assert find_object('{"a": {"b": 2}, } then {"c": 3}').value == {"c": 3}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 2}, }',
        '{"a": {"b": 2} "c": 1}',
        "{'a': {\"b\": 2}}",
        '{a: {"b": 2}}',
        '{ // note\n "a": {"b": 2}, }',
        '{"a": {"b": 2}, "c": ',
        '{"a": {"b": 2}, "c": {"d": 4',
    ],
)
def test_the_inside_of_a_damaged_object_is_never_the_answer(text: str) -> None:
    assert find_object(text).value is None


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_do_not_parse(constant: str) -> None:
    found = find_object(f'{{"a": {constant}}}')
    assert found.value is None
    assert "does not parse" in found.problem


@pytest.mark.parametrize("text", ["[1, 2]", "42", '"text"', "", "no json at all", "use {name} and {a, b}", "{{{"])
def test_without_an_object_it_says_so(text: str) -> None:
    assert find_object(text).problem == "The answer holds no JSON object."


def test_an_empty_object_is_no_answer() -> None:
    assert find_object("It returns `{}`.").problem == "The JSON object is empty."
    assert find_object('It returns `{}`. {"a": 1}').value == {"a": 1}


def test_lone_surrogates_are_replaced_and_pairs_are_kept() -> None:
    found = find_object(r'{"a": "\ud800 \ud83d\ude00", "\udfff": "x"}')
    assert found.value == {"a": "\ufffd \U0001f600", "\ufffd": "x"}
    assert find_object('{"a": "\udc80"}').value == {"a": "\ufffd"}


def test_what_is_cut_off_inside_a_string_is_not_for_mending() -> None:
    found = find_object('{"files": [{"path": "a.py", "content": "def f():\\n    ret')
    assert (found.damaged, "cut off" in found.problem) == ("", True)
    assert find_object('{"a": "5" tall"}').damaged == '{"a": "5" tall"}'


def _nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_depth_is_bounded() -> None:
    assert find_object(_nested(MAX_DEPTH)).value is not None
    for depth in (MAX_DEPTH + 1, 5_000, 200_000):
        assert find_object(_nested(depth)).problem == "The JSON object is nested too deeply."


@pytest.mark.parametrize(
    "unit", ["{", '{"', '{"a":', '{"a"}', '{"a":1,}', "{ ", "{a", "{/*", '{"a" /*', '{"a": [', '{"a": "\\"', "{'", '"{']
)
def test_hostile_text_costs_no_more_than_its_length(unit: str) -> None:
    """Quadratic work on 200,000 pieces would take minutes, and the suite's time with it."""
    assert find_object(unit * 200_000).value is None
