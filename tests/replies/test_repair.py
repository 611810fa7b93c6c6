from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_multi_role.replies.repair import MAX_REPAIRED_CHARACTERS, InexactObject, TolerantReader
from tests.support.catalogs import raised


def _read(text: str) -> dict[str, object]:
    return TolerantReader(text, 0).read()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, "x",],}', {"a": [1, "x"]}),
        ('{"a": 1 "b": true "c": [] "d": {}}', {"a": 1, "b": True, "c": [], "d": {}}),
        ('{"a": [{"b": 1} {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"files": [{"path": "a", "content": "x"}}', {"files": [{"path": "a", "content": "x"}]}),
        ('{"files": [{"path": "a", "content": "x"], "b": 1}', {"files": [{"path": "a", "content": "x"}], "b": 1}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": "one\ntwo\r\n\tthree \\"x\\" \\\\n"}', {"a": 'one\ntwo\r\n\tthree "x" \\n'}),
        ('{"a": None, "b": True, "c": False}', {"a": None, "b": True, "c": False}),
        ("{a: 1, $b_2: 'x'}", {"a": 1, "$b_2": "x"}),
        ("{'a': 'it\\'s \"x\" \\x41\\u00e9\\n', 'b': \"it's\"}", {"a": 'it\'s "x" A\u00e9\n', "b": "it's"}),
        ('{ // first\n "a": 1, # one\n /* two */ "b": "// x" // last\n}', {"a": 1, "b": "// x"}),
        ('{"a": [1,\n2 // two\n]}', {"a": [1, 2]}),
        (r'{"a": "\ud83d\ude00",}', {"a": "\U0001f600"}),
        ('{"a": [+5, .5, -.5e1, +0.25], "b": +1}', {"a": [5, 0.5, -5.0, 0.25], "b": 1}),
        (
            '{"a": (1, "x"), "b": (), "c": (2,), "d": ((1, 2), [3])}',
            {"a": [1, "x"], "b": [], "c": [2], "d": [[1, 2], [3]]},
        ),
        ('{"a": "it\\\'s"}', {"a": "it's"}),
        ('{"a": "one \\\ntwo"}', {"a": "one two"}),
        ('{"a": " x}``` [1, {b: 2}] // c\n", "": "y",}', {"a": " x}``` [1, {b: 2}] // c\n", "": "y"}),
        ('{"a": "x}\\\\\\"y",}', {"a": 'x}\\"y'}),
        ('{"a": "{b: 1}", "c": "[d, e]", "f": "2", "g": "N/A",}', {"a": "{b: 1}", "c": "[d, e]", "f": "2", "g": "N/A"}),
        ('{"a": "(b)"/* one */, "c": "d]"/* two */}', {"a": "(b)", "c": "d]"}),
    ],
)
def test_what_is_certain_is_repaired(text: str, expected: dict[str, object]) -> None:
    assert _read(text) == expected


STRINGS = [
    '{"content":"""print("hello")\\n"""}',
    '{"content":"x = {"a": 1, "b": 2}\n"}',
    '{"a": "he said "hi" to me", "b": 1}',
    '{"a": "x" "b": 2}',
    '{"content": "print(" " + x + ":")"}',
    '{"content": "out += ", total: " + str(x)"}',
    '{"files": [{"content": "x = ["]", ":"]"}]}',
    '{"content": "o = {a: "//"\n}"}',
    "{'a': 'it's'}",
    '{"a": "\\d"}',
    "{'a': r'x'}",
    "{'a': ('x')}",
    '{"a": (1]}',
    '{"files": [{"path": "a.py", "content": "print(\'it\\\'s\')"}]}',
    '{"files": [{"path": "a.sh", "content": "cp a \\\n b"}]}',
    "{'code': 'x = 1 + \\\n 2'}",
    "{'a': [''//'\n]}",
    '{"a": "one\nprint(\'\\n\')"}',
    '{"a": "\x1b"}',
    '{"a\nb": 1}',
    '{"a": "b, "c": "d"}',
    '{"a": "b + "c"}',
    '{"a": "b" + "c"}',
    '{"a": "b" c}',
    '{"a": b", "c": "d"}',
    '{"a": "5\'3")"}',
    '{"a": "b\\u26"}',
    '{"a": “b”}',
    '{\\"a\\": \\"b\\"}',
]
STRUCTURES = [
    *['{"a": [1, ...]}', '{"a": [1, …]}', '{"a": ["x", ...], "b": 1}', '{"a": [1, 2, // rest unchanged\n]}'],
    *[
        '{"a": [1,\n// und so weiter\n]}',
        '{"a": [ /* wie bisher */ ]}',
        '{"a": 1, // other keys as before\n "b": 2}',
    ],
    *['{"a": [1,, 2]}', '{"a": }', '{"a"}', '{"a": [,]}', '{"a": {"b": 1, }, ... }', '{"a": [1, "b": 2}'],
    *[
        '{"a": [[1, 2}',
        '{"a": [1]], "b": 2}',
        '{"a": [1, }',
        '{"a": [1 2]}',
        '{"a": 01}',
        '{"a": 0x1}',
    ],
    *['{"a": 2.}', '{"a": 2e}', '{"a": -}', '{"a": 0.0.1}', '{"a": 1.2.3}', '{"a": 2024-10-18T18:35}'],
    *[
        '{"a": /x/}',
        '{"a": Long(2)}',
        '{"a": https://b.c/}',
        '{"a": hello world}',
        '{"a": trueish}',
        '{"a": [1 {}]}',
    ],
    *['{"a": [1],, "b": 2}', '{"a": 1, "a": 1}', '{"a": {"b": 1], "c": 2}', '{"a" 2}', "{:2}", '{,"a": 1}'],
    *['{"a": DONE}', '{"a": undefined}', '{"a": `x`}', "{None: 1}", "{1: 2}"],
]


@pytest.mark.parametrize("text", [*STRINGS, *STRUCTURES])
def test_string_or_structure_is_never_guessed(text: str) -> None:
    with pytest.raises(InexactObject, match="does not parse"):
        _read(text)


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2', '{"a": "half', "{'a': 'half", '{"a": {"b": 1}', '{"a": 1 /* half', "{"]
)
def test_what_is_cut_off_is_not_closed(text: str) -> None:
    with pytest.raises(InexactObject, match="cut off"):
        _read(text)


@given(st.text(alphabet=st.sampled_from("ab{}[],:\"\\\n\t `'é"), max_size=30))
def test_repair_keeps_every_file_as_it_was(content: str) -> None:
    text = json.dumps({"content": content, "b": 1}).removesuffix("}") + ",}"
    assert _read(text) == {"content": content, "b": 1}
    assert _read(repr({"content": content, "b": [None, True]})) == {"content": content, "b": [None, True]}


@pytest.mark.parametrize("text", ["{name}", '{"a" and "b"}', "{color: red}", "{a, b}", "{x:.2f}", "{not json}"])
def test_brace_in_prose_is_not_an_object(text: str) -> None:
    assert not raised(InexactObject, _read, text).is_object


def test_length_of_what_is_repaired_is_bounded() -> None:
    with pytest.raises(InexactObject, match="too long"):
        _read('{"a": "' + "x" * MAX_REPAIRED_CHARACTERS + '",}')
