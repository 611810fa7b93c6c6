"""No text of a model is guessed: whatever happens to an answer on its way, it is read as it was meant, or not at all.

`python -m pytest --hypothesis-profile=search tests/replies/test_exactness.py` searches longer than the gate does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_multi_role.replies import read_reply

Handoff = dict[str, Any]
Damage = Callable[[st.DataObject, Handoff], str]

SCHEMA = {
    "type": "object",
    "required": ["summary", "files", "done"],
    "properties": {"done": {"type": "boolean"}, "files": {"type": "array"}, "summary": {"type": "string"}},
}
SNIPPETS = [
    *"\"'{}[]:,\\\n\t #`x1é😀",
    *["```json\n", "<think>", "</think>", "//", "/*", "*/", '"""', "'''", "\\n", '\\"', "…", "...", "None", "it's"],
    *[
        "\r\n",
        "\n```python\n",
        "\n```\n",
        "# rest unchanged\n",
        '", "',
        '": "',
        '"},',
        '"}]',
        '" + x + "',
        "} else {",
        'f("}", "]")',
    ],
    *['print("hi")\n', '{"summary": "s"}', "d = {\"a\": 1, 'b': [None]}\n", '", total: " + x', '"//x"\n}'],
]
CODE = st.lists(st.sampled_from(SNIPPETS), max_size=8).map("".join) | st.text(max_size=12)
HANDOFFS = st.fixed_dictionaries(
    {
        "summary": CODE,
        "files": st.lists(st.fixed_dictionaries({"path": st.just("a.py"), "content": CODE}), min_size=1, max_size=2),
        "done": st.booleans(),
    },
    optional={"tags": st.lists(CODE, max_size=3), "count": st.integers() | st.none()},
)


def _plain(data: st.DataObject, handoff: Handoff) -> str:
    indent, ascii_only = data.draw(st.sampled_from([None, 1, 2])), data.draw(st.booleans())
    return json.dumps(handoff, indent=indent, ensure_ascii=ascii_only)


def _cut(data: st.DataObject, handoff: Handoff) -> str:
    text = _plain(data, handoff)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    return cut + data.draw(st.sampled_from(["", "\n```", "\nHope that helps!"]))


def _with_lines_twice(data: st.DataObject, handoff: Handoff) -> str:
    lines = json.dumps(handoff, indent=1).split("\n")
    start, end, again = sorted(data.draw(st.tuples(*[st.integers(0, len(lines))] * 3)))
    return "\n".join(lines[:again] + lines[start:end] + lines[again:])


def _among_others(data: st.DataObject, handoff: Handoff) -> str:
    """Drafts, examples and other answers around it."""
    other = json.dumps({**handoff, "summary": data.draw(CODE)})
    thought = f"<think>so {other[: data.draw(st.integers(0, len(other)))]}</think>"
    before, after = data.draw(
        st.sampled_from(
            [
                (thought, ""),
                ("", f"\n{_plain(data, handoff)}"),
                ("Return `{}`, or {name}:\n```json\n", "\n```\nThat is {all}."),
                ('{"an": "example"}\n', ""),
                ("```python\nd = {'a': {}}\n```\n", '\n```sh\nf() { echo "hi"; }\n```'),
                (f"{other}\n", ""),
                ("", f"\n{other}"),
                ("[", "]"),
                ("", "}"),
            ]
        )
    )
    return f"{before}{_plain(data, handoff)}{after}"


def _with_bare_quotes(data: st.DataObject, handoff: Handoff) -> str:
    """Quotation marks inside strings, some or all of them, are not escaped."""
    keep = data.draw(st.sampled_from([0, 2, 3]))
    number = iter(range(10_000))

    def unescaped(found: re.Match[str]) -> str:
        return found[0] if keep and next(number) % keep else '"' if found[0] == '\\"' else found[0]

    text = re.sub(r"\\(?:.)", unescaped, _plain(data, handoff))
    return _with_raw_line_ends(text) if data.draw(st.booleans()) else text


def _with_raw_line_ends(text: str) -> str:
    raw = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}
    return re.sub(r"\\.", lambda found: raw.get(found[0], found[0]), text)


def _requoted(data: st.DataObject, handoff: Handoff) -> str:
    text = _plain(data, handoff)
    bare_keys = re.sub(r'(?<=[{,\s])"(summary|files|path|content|done|tags|count)"(?=:)', r"\1", text)
    right, wrong = (_single_quoted(text, apostrophe) for apostrophe in ("\\'", "'"))
    return data.draw(st.sampled_from([repr(handoff), bare_keys, right, wrong, _with_raw_line_ends(text)]))


def _single_quoted(text: str, apostrophe: str) -> str:
    def quoted(found: re.Match[str]) -> str:
        bare = {'\\"': '"', "'": apostrophe}
        body = re.sub(r"\\.|'", lambda part: bare.get(part[0], part[0]), found[1])
        return f"'{body}'"

    return re.sub(r'"((?:[^"\\]|\\.)*)"', quoted, text)


def _with_line_noise(data: st.DataObject, handoff: Handoff) -> str:
    """Comments, and commas and closers too many or too few, at the ends of the lines."""
    noise = st.sampled_from(
        ["", "", "", ",", " // a note", " # it's", ' // "old"', " /* ] */", "}", "]", "\n  // ...", '"']
    )
    lines = json.dumps(handoff, indent=1).split("\n")
    shorter = st.sampled_from([0, 0, 0, 0, 1])
    return "\n".join(line[: len(line) - data.draw(shorter)] + data.draw(noise) for line in lines)


DAMAGES: list[Damage] = [
    _plain, _cut, _with_lines_twice, _among_others, _with_bare_quotes, _requoted, _with_line_noise,
]  # fmt: skip


def _says(text: str, value: object) -> bool:
    """Whether ``text``, from its first brace to its last, is JSON for ``value``: nobody could see any damage."""
    try:
        return bool(json.loads(text[text.find("{") : text.rfind("}") + 1]) == value)
    except ValueError:
        return False


def _has_the_same_words(text: str, value: object) -> bool:
    """Whether ``text`` differs from JSON for ``value`` by its commas and brackets alone."""
    words = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s\[\]{}:,"]+')
    return words.findall(text) == words.findall(json.dumps(value))


def test_whole_answers_are_read_as_they_are() -> None:
    handoff = {"summary": 'a "b"', "files": [{"path": "a.py", "content": 'x = {"}": "<think>"}\n```\n'}], "done": True}
    assert read_reply(f"```json\n{json.dumps(handoff)}\n```", SCHEMA).handoff == handoff


@settings(max_examples=max(400, settings().max_examples))
@given(HANDOFFS, st.sampled_from(DAMAGES), st.sampled_from([None, SCHEMA]), st.data())
def test_answer_is_read_right_or_asked_for_again(
    handoff: Handoff, damage: Damage, schema: dict[str, object] | None, data: st.DataObject
) -> None:
    text = damage(data, handoff)
    reply = read_reply(text, schema)
    if reply.handoff is None:
        assert reply.problem
    elif reply.handoff != handoff:
        lines_twice = damage is _with_lines_twice and _has_the_same_words(text, reply.handoff)
        assert lines_twice or _says(text, reply.handoff), text
