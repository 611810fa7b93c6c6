"""Read a JSON object that is not quite JSON, exactly: without spending a turn and without guessing.

The text may differ from JSON in a comma, an inner closing bracket, the style of its quotation marks, keys and numbers,
comments, Python's literals and tuples, raw line ends, ``\\'`` and a line that ``\\`` continues. In `VERBATIM` fields,
the last two are refused, because code may have both. Every string is taken as written: one that is followed by anything
but ``,``, ``:``, a closing bracket or a comment may have ended too early, at an unescaped quotation mark.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Final, NoReturn

MAX_DEPTH = 64
MAX_REPAIRED_CHARACTERS = 1_000_000

_CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f"
_COMMENT_OR_SPACE = re.compile(r"\s++|(?P<comment>(?://|\#)[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?P<end>\*/)?)")
_TOKEN = re.compile(
    rf"""(?P<bracket>[\[{{(]) | (?P<mark>[\])}}:,])
    | (?P<double>"(?:[^"\\{_CONTROL}]++|\\.)*+")
    | (?P<single>'(?:[^'\\{_CONTROL}]++|\\(?:['"\\bfnrt\n]|u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}}))*+')
    | (?P<number>[+-]?(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?![\w.])
    | (?P<word>[^\W\d][\w$]*+|\$[\w$]++)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSED_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\]++|\\.)*+\'', re.DOTALL)
_LITERALS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
VERBATIM: Final = frozenset({"files", "code", "content", "markdown"})
"""Fields whose texts may be code, where a backslash may be the text's own."""
_OWN_ESCAPE = re.compile(r"\\(?:(?P<quote>')|(?P<continued>\n)|.)", re.DOTALL)
_LEFT_OUT = re.compile(
    r"\.\.\.|…|\b(?:rest|remain\w*|unchanged|omitted|same|others?|more|previous|existing|truncated|skipped|abbreviated"
    r"|shortened|continue[sd]?|etc|and so on|as before)\b",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"[\w.+-]*+\Z")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SINGLE_TO_DOUBLE = re.compile(r"""\\x(?P<hex>..)|\\(?P<quote>')|\\.|(?P<bare>")""", re.DOTALL)


class InexactObject(Exception):
    """No object can be read exactly; ``position`` is where reading stopped.

    ``is_object``: an object was meant, because the text has a key, a colon and a value, or ends before it could have
    them. Otherwise it is a brace in prose, and an answer may follow it.
    """

    def __init__(self, problem: str, position: int = 0, *, is_object: bool = True) -> None:
        super().__init__(problem)
        self.position = position
        self.is_object = is_object


@dataclass
class _OpenBracket:
    """An unclosed bracket; ``expects`` is ``item``, ``colon``, ``value`` (for ``key``) or ``comma``."""

    bracket: str
    value: dict[str, object] | list[object]
    expects: str = "item"
    key: str = ""

    def add(self, value: object) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
        else:
            self.value.append(value)
        self.expects = "comma"


class TolerantReader:
    """Reads the object at ``start`` in time linear in its length; ``position`` is then its end."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._open: list[_OpenBracket] = []
        self._last = ""
        self._commented = False
        self._is_object = False
        self._key_styles: set[str] = set()
        self._quotation_marks = {'"'}
        self.position = start

    def read(self) -> dict[str, object]:
        """Raises `InexactObject`."""
        outermost: dict[str, object] = {}
        self.position += 1
        self._open.append(_OpenBracket("{", outermost))
        self._last = "bracket"
        while self._open:
            token = self._next_token()
            kind = token.lastgroup or ""
            if kind == "mark":
                self._last = self._read_mark(token[0])
            else:
                self._read_item(kind, token[0])
                self._last = kind
            self.position = token.end()
        return outermost

    def _next_token(self) -> re.Match[str]:
        self._commented = False
        while blank := _COMMENT_OR_SPACE.match(self._text, self.position):
            if blank["comment"] is not None:
                self._read_comment(blank)
            self.position = blank.end()
        if self.position - self._start > MAX_REPAIRED_CHARACTERS:
            self._refuse("it is too long to be repaired")
        return _TOKEN.match(self._text, self.position) or self._refuse_rest()

    def _read_comment(self, blank: re.Match[str]) -> None:
        """Skip a comment, unless it may be part of a string or stand for omitted content."""
        comment = blank["comment"]
        if comment.startswith("/*") and blank["end"] is None:
            self._refuse_truncated()
        if not self._quotation_marks.isdisjoint(comment):
            self._refuse("a comment has a quotation mark, so it may be part of a string")
        if _LEFT_OUT.search(comment) or (self._open[-1].bracket == "[" and self._is_first_in_line()):
            self._refuse("a comment may stand for something that was left out")
        self._commented = True

    def _is_first_in_line(self) -> bool:
        line = self._text.rfind("\n", max(self._start, self.position - 200), self.position) + 1
        return line > 0 and not self._text[line : self.position].strip()

    def _read_mark(self, mark: str) -> str:
        """Read a comma, colon or closing bracket; returns its role for the next token."""
        top = self._open[-1]
        if mark in "])}":
            return self._close(mark, top)
        wanted, then = ("colon", "value") if mark == ":" else ("comma", "item")
        if top.expects != wanted:
            self._refuse(f"unexpected {mark!r}")
        top.expects = then
        return mark

    def _close(self, mark: str, top: _OpenBracket) -> str:
        if top.expects in ("colon", "value"):
            self._refuse("a key has no value")
        if self._commented and top.expects == "item":
            self._refuse("a comment may stand for something that was left out")
        if mark == ")" and isinstance(top.value, list) and len(top.value) == 1 and top.expects == "comma":
            self._refuse("a value in parentheses is not JSON")
        self._open.pop()
        if _CLOSERS[top.bracket] == mark:
            return "closer"
        # A single unclosed bracket can be closed in one place only, several in more than one.
        if top.expects != "comma" or not self._open or _CLOSERS[self._open[-1].bracket] != mark:
            self._refuse(f"unexpected {mark!r}")
        self._open.pop()
        return "implied closer"

    def _read_item(self, kind: str, token: str) -> None:
        """Read a key or a value; a bracket opens a value."""
        top = self._open[-1]
        if top.expects == "comma":
            self._check_missing_comma(kind, top)
        elif top.expects == "colon":
            self._refuse(f"expected ':' after the key {top.key!r}")
        if top.bracket == "{" and top.expects != "value":
            top.key = self._key(kind, token, top)
            top.expects = "colon"
            return
        self._is_object |= kind != "word" or token in _LITERALS or "word" not in self._key_styles
        value = self._value(kind, token)
        top.add(value)
        if isinstance(value, dict | list):
            if len(self._open) >= MAX_DEPTH:
                self._refuse("it is nested too deeply")
            self._open.append(_OpenBracket(token, value))

    def _check_missing_comma(self, kind: str, top: _OpenBracket) -> None:
        """Allow a missing comma between two certain neighbours; a string before it could have ended too early."""
        if self._last in ("double", "single"):
            self._refuse('a string is followed by something else: write a quotation mark inside a string as \\"')
        certain = self._last == "closer" or (top.bracket == "{" and self._last != "implied closer")
        if not certain or kind == "number" or (kind == "word" and top.bracket == "["):
            self._refuse("expected ',' or a closing bracket")
        top.expects = "item"

    def _key(self, kind: str, token: str, top: _OpenBracket) -> str:
        if kind in ("bracket", "number") or token in _LITERALS:
            self._refuse("expected a key")
        if "\n" in token or "\r" in token:
            self._refuse("a key has a raw line end")
        key = token if kind == "word" else self._string(kind, token)
        self._key_styles.add(kind)
        if len(self._key_styles) > 1:
            self._refuse("its keys are quoted in different ways")
        if isinstance(top.value, dict) and key in top.value:
            self._refuse(f"the key {key[:40]!r} appears twice")
        return key

    def _value(self, kind: str, token: str) -> object:
        if kind == "bracket":
            return {} if token == "{" else []
        if kind == "number":
            return self._number(token)
        if kind != "word":
            return self._string(kind, token)
        if token not in _LITERALS:
            self._refuse_unfinished()
            self._refuse(f"{token[:40]} is not JSON")
        return _LITERALS[token]

    def _number(self, token: str) -> object:
        try:
            number = json.loads(re.sub(r"^([+-]?)(?=\.)", r"\g<1>0", token).removeprefix("+"))
        except ValueError:  # more digits than Python converts
            number = math.inf
        if isinstance(number, float) and math.isinf(number):
            self._refuse(f"the number {token[:40]} is out of range")
        return number

    def _string(self, kind: str, token: str) -> str:
        raw_line_ends = "\n" in token or "\r" in token
        if raw_line_ends and not set("nrtbfux").isdisjoint(_ESCAPE.findall(token)):
            self._refuse("a string has raw line ends as well as escapes, so it is not clear which of them are code")
        if kind == "single":
            self._quotation_marks.add("'")
            token = f'"{_SINGLE_TO_DOUBLE.sub(_double_quoted, token[1:-1])}"'
        if not any(each.key in VERBATIM for each in self._open):
            token = _OWN_ESCAPE.sub(_without_backslash, token)
        try:
            return str(json.loads(token, strict=False))
        except ValueError:
            self._refuse("a string has an escape that JSON does not have")

    def _refuse_rest(self) -> NoReturn:
        rest = self._text[self.position : self.position + 3]
        opens_string = rest[:1] in ('"', "'")
        if opens_string and not _CLOSED_STRING.match(self._text, self.position):
            self._refuse_truncated()
        self._refuse_unfinished()
        self._is_object |= self._open[-1].expects == "value" and rest[0] in "\"'`+-0123456789"
        if opens_string:
            self._refuse("a string has a character or an escape that JSON does not have")
        self._refuse("a part of it was left out" if rest == "..." or rest[0] == "…" else f"unexpected {rest[0]!r}")

    def _refuse_unfinished(self) -> None:
        """Refuse a number or a word that the end of the text may have truncated."""
        if _UNFINISHED.match(self._text, self.position):
            self._refuse_truncated()

    def _refuse_truncated(self) -> NoReturn:
        inside = "a string" if self._text[self.position : self.position + 1] in ('"', "'") else "the JSON object"
        raise InexactObject(
            f"The answer was cut off: it ends before {inside} does. Write a shorter one.", len(self._text)
        )

    def _refuse(self, problem: str) -> NoReturn:
        at = self.position
        near = self._text[max(self._start, at - 20) : at + 20]
        raise InexactObject(f"The JSON object does not parse: {problem}, near {near!r}.", at, is_object=self._is_object)


def _without_backslash(found: re.Match[str]) -> str:
    return "" if found["continued"] else found["quote"] or found[0]


def _double_quoted(found: re.Match[str]) -> str:
    """Convert an escape, or a bare quotation mark, of a single-quoted string to JSON."""
    if found["hex"]:
        return f"\\u00{found['hex']}"
    return "'" if found["quote"] else '\\"' if found["bare"] else found[0]
