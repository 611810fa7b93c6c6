from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.replies.extract import NO_OBJECT, find_objects
from codex_multi_role.replies.repair import MAX_DEPTH

# Strings full of what a careless extractor trips over.
NASTY = st.text(alphabet=st.sampled_from('{}[]"`\\,: \nabé\U0001f600'), max_size=20) | st.text(max_size=10)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NASTY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NASTY, JSON_VALUES, min_size=1, max_size=4)
# Without what looks like more JSON beside the object, and without tags.
PROSE = st.text(alphabet=st.characters(exclude_characters="{}\"',]<>", exclude_categories=["Cs"]), max_size=60)
SURROUNDINGS = st.sampled_from(
    [
        ("", ""),
        ("```json\n", "\n```"),
        ("```\n", "\n```\nHope that helps!"),
        ("\ufeff", ""),
        ("Use {name} and {other}:\n\n", "\nas in `{name}`."),
        ("returns `{}` by default. ", ""),
        ('Not {"a" and "b"}, nor {"x"}, but ', ""),
        ('<think>First {"a": 1}, then {"b": </think>', ""),
        ('{"a": "draft"}</think>', ""),
        ('<Thinking>{"a": "draft"}</Thinking>\n', ""),
    ]
)


def found(text: str) -> dict[str, object] | None:
    """The value of the only object."""
    objects = find_objects(text).objects
    return objects[0].value if len(objects) == 1 else None


@given(OBJECTS, SURROUNDINGS, PROSE, PROSE, st.sampled_from([None, 2]))
def test_any_object_comes_back_equal_from_prose_and_fences(
    value: dict[str, object], around: tuple[str, str], before: str, after: str, indent: int | None
) -> None:
    text = before + around[0] + json.dumps(value, ensure_ascii=False, indent=indent) + around[1] + after
    assert found(text) == value


@given(st.text())
def test_no_text_makes_it_fail(text: str) -> None:
    extraction = find_objects(text)
    assert bool(extraction.objects) != bool(extraction.problem)


@given(OBJECTS, st.data())
def test_cut_off_object_never_yields_one_of_its_parts(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps({"outer": value})
    cut = data.draw(st.integers(min_value=1, max_value=len(text) - 1))
    assert "cut off" in find_objects(text[:cut]).problem
    assert text[cut:].lstrip().startswith("{") or found(text[cut:]) is None


@pytest.mark.parametrize(
    "rest", ['ll}, [[], {"a": 1}], {}]}}', ', {"b": 1}]]]}}', '[{"b": {}}]]}}', '5, {"a": 1}], {}]}}']
)
def test_object_in_lists_whose_start_is_missing_is_only_a_part(rest: str) -> None:
    assert not find_objects(rest).objects


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
    assert found(f"Here:\n```json\n{json.dumps(value)}\n```\nDone.") == value


def test_all_objects_that_differ_are_found() -> None:
    """Which of them is the answer is not for the search to say."""
    texts = ['{"a": 1}\n{"b": 2}', '{"a": 1, } then {"b": 2}', '{"a": 1} {"a": 1}\n{"b": 2}']
    for text in texts:
        assert [each.value for each in find_objects(text).objects] == [{"a": 1}, {"b": 2}]
    assert found('{"a": 1}\n{"a": 1}') == {"a": 1}
    assert len(find_objects('{"a": 1} {"a": true}').objects) == 2
    assert found('[{"a": 1}]') == {"a": 1}


@pytest.mark.parametrize("tag", ["think", "thinking", "Thought", "reasoning", "scratchpad"])
def test_thinking_is_dropped_only_outside_of_strings(tag: str) -> None:
    value = {"content": f"<{tag}>x</{tag}> and </{tag}>"}
    assert found(f'<{tag}>{{"content": "draft"}}</{tag}>\n{json.dumps(value)}') == value
    assert found(f'a draft {{"content": "x"}}</{tag}> {json.dumps(value)}') == value
    assert "cut off" in find_objects(f'<{tag}> {{"content": "draft"}}').problem


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 2} "c" 1}',
        '{"a" "x", "c": {"b": 2}}',
        '{"a": ..., "c": {"b": 2}}',
        '{"a": {"b": 2}, "c": ',
        '{"a": {"b": 2}, "c": {"d": 4',
        '{"a": {"b": 2}}, "c": 3}',
        '"a": [{"b": 2}]}',
        'a": {"b": 2}}',
        '{"code": "print("} else {")"}',
        "{'code': 'print('} else {')'}",
        '{"code": "f("}")", "call": {"b": 2}}',
    ],
)
def test_part_is_never_taken_for_the_whole(text: str) -> None:
    assert find_objects(text).objects == ()
    assert not find_objects(text).only_text


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000])
def test_numbers_that_json_does_not_have_do_not_parse(constant: str) -> None:
    for text in (f'{{"a": {constant}}}', f'{{"a": {constant},}}', f"{{'a': {constant}}}"):
        assert "does not parse" in find_objects(text).problem


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": 1, "a": 1}', '{"b": {"a": 1, "a": 2}}', "{a: 1, a: 2,}"])
def test_duplicate_key_does_not_parse(text: str) -> None:
    assert "the key 'a' appears twice" in find_objects(text).problem


@pytest.mark.parametrize("text", ["[1, 2]", "42", '"text"', "", "no json at all", "use {name} and {a, b}", "{{{x}"])
def test_without_an_object_it_says_so(text: str) -> None:
    assert find_objects(text).problem == NO_OBJECT
    assert find_objects(text).only_text


def test_empty_object_is_not_an_answer() -> None:
    assert find_objects("It returns `{}`.").problem == "The JSON object is empty."
    assert found('It returns `{}`. {"a": 1}') == {"a": 1}


def test_lone_surrogates_are_replaced_and_pairs_are_kept() -> None:
    assert found(r'{"a": "\ud800 \ud83d\ude00", "\udfff": "x"}') == {"a": "\ufffd \U0001f600", "\ufffd": "x"}
    assert found('{"a": "\udc80"}') == {"a": "\ufffd"}
    assert "twice" in find_objects(r'{"\ud800": 1, "\udfff": 2}').problem


def _nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_depth_is_bounded() -> None:
    assert found(_nested(MAX_DEPTH)) is not None
    assert found(_nested(MAX_DEPTH).replace("1", "1,")) is not None
    for depth in (MAX_DEPTH + 1, 5_000, 200_000):
        assert find_objects(_nested(depth)).problem == "The JSON object is nested too deeply."
    assert "nested too deeply" in find_objects(_nested(MAX_DEPTH + 1).replace("1", "1,")).problem


def test_number_of_objects_and_braces_is_bounded() -> None:
    assert "more than 100 JSON objects" in find_objects('{"a": 1}\n' * 101).problem
    assert "more than 10000 braces" in find_objects("{x} " * 10_001).problem


HOSTILE = [
    *[
        "{",
        '{"',
        '{"a":',
        '{"a":1,}',
        "{a",
        "{/*",
        '{"a" /*',
        '{"a": [',
        '{"a": "\\"',
        "{'",
        '"{',
    ],
    *["{//\n", "{'\\q{", '{"a":1}', "<think>", "<think></think>", '</think>{"a":1}', "<draft", '{"a": 1} {"b" '],
]
INSIDE = [('"a" ', '{"x":'), ("{", '{"a":'), ('{"b" ', '{"a":'), ("1,", '{"a":['), ("[],", '{"a":['), (" ", '{"a":1')]
INSIDE += [(',"a":1', '{"a":0'), ('\\"', '{"a":"'), ("\\q", "{'a':'"), ("\n# x\n", '{"a":[0'), (" /* x */", '{"a":[0')]
TEXTS = [("", unit) for unit in HOSTILE] + [(before, unit) for unit, before in INSIDE]


@pytest.mark.parametrize(("before", "unit"), TEXTS)
def test_hostile_text_costs_no_more_than_its_length(before: str, unit: str) -> None:
    """Counted in calls, which no load on the machine changes; quadratic work of other kinds would take minutes."""
    small, large = (_calls(before + unit * pieces) for pieces in (500, 2_000))
    assert large <= 4.2 * small + 100
    assert find_objects(before + unit * 50_000).problem


def _calls(text: str) -> int:
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        find_objects(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "answer",
    [
        "```python\nD = {\"a\": 1, 'b': {}}\n```\n\n```json\n%s\n```",
        "```js\nfunction f() { return {a: 1}; }\n```\n%s",
        "I parse the tag `<think>` now.\n%s",
    ],
)
def test_code_shown_before_the_answer_is_not_part_of_it(answer: str) -> None:
    found = find_objects(answer % '{"summary": "fine"}')
    assert [each.value for each in found.objects] == [{"summary": "fine"}], found.problem


def test_answer_in_a_fence_of_another_language_is_found() -> None:
    for code in ("{'summary': 'fine'}", "result = {'summary': 'fine'}"):
        assert [each.value for each in find_objects(f"```python\n{code}\n```").objects] == [{"summary": "fine"}]


def test_code_after_an_object_may_be_the_rest_of_a_string() -> None:
    cut_short = '{"summary": ""}\n```python\n}: ",\n "files": []\n}\n```'
    assert not find_objects(cut_short).objects
