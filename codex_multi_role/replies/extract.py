"""Find the JSON objects in a model's answer: between fences and prose, outside its thinking, never inside one another.

Every ``{`` is tried from left to right. One that begins an object which cannot be read exactly ends the search, because
what follows may be part of that object. Each stretch of the text is read once, so hostile text costs linear time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from codex_multi_role.reading.json_files import refuse_constant
from codex_multi_role.replies.repair import MAX_DEPTH, InexactObject, TolerantReader

MAX_OBJECTS = 100
MAX_BRACES = 10_000

_START = re.compile(
    r"(?P<thinking>(?<!`)<(?P<end>/?)(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|draft)>)|\{"
    # Code of another language, shown before the answer.
    r"|(?P<code>(?:(?<=\n)|\A)(?P<fence>```+|~~~+)(?!json|[`~])[a-z][^\n`{}\"]*\n(?!\s*+[\[{]))",
    re.IGNORECASE,
)
_THINKING_END = re.compile(r"</(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|draft)>", re.IGNORECASE)
_QUOTED_KEY = re.compile(r'\{\s*+"(?:[^"\\]++|\\.)*+"\s*+:', re.DOTALL)
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MAY_HOLD_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_KEY = re.compile(r"""["']\s*+:""")
_LINE_START = re.compile(r"(?:^|\n)[ \t\ufeff]*\Z")
_MORE_BEHIND = re.compile(r"\s*+(?:,|[\]\s]++\})")
_ANYTHING_BEHIND = re.compile(r"\s*+(?:[,}]|[\]\s]++\})")
_LIST_END = re.compile(r"\s*+\]")
_TOO_DEEP = InexactObject("The JSON object is nested too deeply.")


@dataclass(frozen=True)
class FoundObject:
    """A non-empty object. ``repaired``: its text is not JSON, but could be read exactly."""

    value: dict[str, object]
    repaired: bool


@dataclass(frozen=True)
class Extraction:
    """``objects``: all distinct ones, in order; ``problem``: what is wrong if they are empty.

    ``only_text``: the answer has no object, not even an attempt at one.
    """

    objects: tuple[FoundObject, ...] = ()
    problem: str = ""
    only_text: bool = False


NO_OBJECT = "The answer contains no JSON object. Write the object itself."


def find_objects(text: str) -> Extraction:
    """Find the objects of an answer. Never raises."""
    search = _Search(text, skips_code=True)
    try:
        search.run()
        if not search.objects:  # the answer may be in the code
            search = _Search(text, skips_code=False)
            search.run()
    except InexactObject as error:
        return Extraction(problem=str(error))
    if search.objects:
        return Extraction(tuple(search.objects.values()))
    problem = "The JSON object is empty." if search.met_empty else NO_OBJECT
    return Extraction(problem=problem, only_text=True)


class _Latest(NamedTuple):
    """The last object found: whether it had to be repaired, and whether it is the first on its line."""

    repaired: bool
    begins_line: bool


class _Search:
    """``objects``: what was found, by its JSON. ``_behind``: where the last object, or piece of thinking, ended."""

    def __init__(self, text: str, *, skips_code: bool) -> None:
        self._text = text
        self._skips_code = skips_code
        self._position = 0
        self._behind = 0
        self._read = 0
        self._tried = 0
        self._latest: _Latest | None = None
        self.objects: dict[str, FoundObject] = {}
        self.met_empty = False

    def run(self) -> None:
        """Raises `InexactObject`."""
        while start := _START.search(self._text, self._position):
            if start["thinking"]:
                self._skip_thinking(start)
            elif start["code"]:
                self._position = start.end()
                if self._skips_code and self._latest is None:  # after an object it may be the rest of a string
                    self._skip_code(start)
            else:
                self._take_object(start.start())
        self._check_behind(len(self._text))

    def _skip_thinking(self, tag: re.Match[str]) -> None:
        if tag["end"]:  # the thinking began before the answer
            self.objects.clear()
            self._latest = None
            self._position = self._behind = tag.end()
            return
        self._check_behind(tag.start())
        end = _THINKING_END.search(self._text, tag.end())
        if end is None:
            raise InexactObject(f"The answer was cut off: it ends inside {tag[0]}. Write a shorter one.")
        self._position = self._behind = end.end()

    def _skip_code(self, opening: re.Match[str]) -> None:
        """Skip a fence with code: its braces and quotation marks belong to no object."""
        closing = re.compile(rf"\n[ \t]*{opening['fence']}[ \t\r]*(?:\n|\Z)").search(self._text, opening.end() - 1)
        self._skips_code = closing is not None  # otherwise no later fence is closed either
        if closing is not None:
            self._check_before(opening.start())
            self._position = self._behind = closing.end()

    def _take_object(self, start: int) -> None:
        self._tried += 1
        if self._tried > MAX_BRACES:
            raise InexactObject(f"The answer contains more than {MAX_BRACES} braces outside of a JSON object.")
        try:
            value, end, repaired = _decode(self._text, start)
        except InexactObject as error:
            if error.is_object:
                raise
            self._position = error.position
            return
        self._position = end
        if not value:
            self.met_empty = True
            return
        self._check_behind(start)
        self._check_before(start)
        self._latest = _Latest(repaired, bool(_LINE_START.search(self._text, max(0, start - 100), start)))
        self._behind = end
        self._read += 1
        if self._read > MAX_OBJECTS:
            raise InexactObject(f"The answer contains more than {MAX_OBJECTS} JSON objects.")
        found = FoundObject(_without_surrogates(value, self._text[start:end]), repaired)
        self.objects.setdefault(json.dumps(found.value, sort_keys=True), found)

    def _check_before(self, start: int) -> None:
        """Reject an object after a key, or inside a brace that is still open: it is only part of one."""
        opened, closed = (self._text.count(brace, self._behind, start) for brace in "{}")
        if opened > closed or _KEY.search(self._text, self._behind, start):
            raise InexactObject("The JSON object does not parse: it is part of an object whose start is damaged.")

    def _check_behind(self, end: int) -> None:
        """Reject an object that ended too early, at a brace inside a string that ended too early: its rest follows it.

        If the object begins a line, a surplus closing brace after it is accepted.
        """
        text, behind = self._text, self._behind
        if self._latest is None or _is_over(text, behind, end, self._latest):
            return
        raise InexactObject(
            "The JSON object does not parse: text follows its last closing brace; "
            'write a quotation mark inside a string as \\".'
        )


def _is_over(text: str, behind: int, end: int, latest: _Latest) -> bool:
    """Whether nothing between ``behind`` and ``end`` can belong to the object before it."""
    more = _MORE_BEHIND if latest.begins_line else _ANYTHING_BEHIND
    if more.match(text, behind, end) or _KEY.search(text, behind, end):
        return False
    if _LIST_END.match(text, behind, end) and text[behind:end].rstrip().endswith("}"):
        return False  # the list was in an object whose start is missing
    quotes = (text.find(quote, behind, end) for quote in ("\"'" if latest.repaired else '"'))
    return not any(quote >= 0 and text.find("}", quote, end) >= 0 for quote in quotes)


def _decode(text: str, start: int) -> tuple[dict[str, object], int, bool]:
    """The object at ``start``, its end, and whether it was repaired. Raises `InexactObject`."""
    if _QUOTED_KEY.match(text, start):
        with suppress(json.JSONDecodeError):
            return *_strict(text, start), False
    reader = TolerantReader(text, start)
    value = reader.read()
    return value, reader.position, True


def _strict(text: str, start: int) -> tuple[dict[str, object], int]:
    """The object at ``start``, and its end. Raises `JSONDecodeError`, or `InexactObject` if no repair could help."""
    try:
        value, end = _STRICT.raw_decode(text, start)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise InexactObject(f"The JSON object does not parse: {error}.") from error
    except RecursionError:
        raise _TOO_DEEP from None
    if _too_deep(value):
        raise _TOO_DEEP
    return value, end


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique: dict[str, object] = {}
    for key, value in pairs:
        if key in unique:
            raise ValueError(f"the key {key[:40]!r} appears twice")
        unique[key] = value
    return unique


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=refuse_constant, parse_float=_finite_float)


def _too_deep(value: object) -> bool:
    """Whether ``value`` is nested too deeply for its later readers (schemas, pretty printing)."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(item: object) -> Iterable[object]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def _without_surrogates(value: dict[str, object], source: str) -> dict[str, object]:
    """Replace every lone surrogate, which UTF-8 cannot encode, by U+FFFD. Raises `InexactObject`."""
    if not _MAY_HOLD_SURROGATE.search(source):
        return value
    clean = _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    return _strict(clean, 0)[0]
