from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.replies.extract import find_object
from codex_multi_role.replies.repair import repair_object


def _mended(text: str) -> dict[str, object] | None:
    found = find_object(text)
    assert found.value is None
    return repair_object(found.damaged)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": "x" "b": 2}', {"a": "x", "b": 2}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "x", "b": true\n```\n', {"a": "x", "b": True}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('{"a": "he said "hi" to me", "b": 1}', {"a": 'he said "hi" to me', "b": 1}),
        ('{"a": None, "b": DONE, "c": NaN}', {"a": None, "b": "DONE", "c": "NaN"}),
        ('{"a" and "b"} are sets. {"a": "yes",}', {"a": "yes"}),
        (r'{"a": "\ud800",}', {"a": "\ufffd"}),
    ],
)
def test_small_damage_is_mended(text: str, expected: dict[str, object]) -> None:
    assert _mended(text) == expected


@given(st.text(alphabet=st.sampled_from("ab{}[],:\"\\\n\t `'é"), max_size=30))
def test_mending_keeps_every_file_as_it_was(content: str) -> None:
    """json-repair alone takes braces and commas of the code for damage, and drops the line end that ends a string."""
    text = json.dumps({"content": content, "b": 1}).removesuffix("}") + ",}"
    assert _mended(text) == {"content": content, "b": 1}


@pytest.mark.parametrize(
    "text",
    [
        "I would use {name} here.",
        '{"a" and "b"} are sets',
        "a { color: red; }",
        "{'a': 1}",
        "{not json}",
        '{"content": "half a fi',
        '{"content": "x"\nHope that helps!',
        "",
    ],
)
def test_no_object_is_invented_from_prose(text: str) -> None:
    assert _mended(text) is None


def test_a_guess_that_loses_words_is_not_taken() -> None:
    assert _mended('{"content": "print("a", {"b": 1, }, "c")\\n", "n": 1, }') is None
    assert _mended('{"content": "print("a")\\n", "n": 1, }') is None


@pytest.mark.parametrize("text", ['{"a": 1e999,}', '{"a": ' * 5_000, '{"a": ' + "[" * 5_000])
def test_what_cannot_be_mended_is_left(text: str) -> None:
    assert _mended(text) is None
