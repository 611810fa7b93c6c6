"""Find the JSON object in a model's answer: fences, prose, several objects, braces inside strings.

Every ``{`` is tried from left to right and the first object that decodes wins. An object that begins but does not
decode is *damaged*: the search goes on behind its end, never inside it, so that a part is never taken for the whole.
Each stretch of the text is read once, so hostile text costs no more than its length.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn, cast

# A brace that begins an object, not a brace of prose such as `{name}`: a key or the end follows. Keys in single
# quotes, bare keys and comments count too: they never decode, but what they hold is not the answer either.
_OBJECT_START = re.compile(r"""\{(?=\s*(?:["'}]|//|/\*|[^\W\d]\w*\s*:))""")
# Proof that an object was meant and mending makes sense: a quoted key and a colon, comments before it at most.
_QUOTED_KEY = re.compile(r'\{(?:\s|//[^\n]*+|/\*(?s:.*?)\*/)*+"(?:[^"\\]++|\\.)*+"\s*:')
_BRACE_OR_STRING = re.compile(r'[{}]|"(?:[^"\\]++|\\.)*+(?P<closed>"?)', re.DOTALL)
_ONLY_CLOSERS_FOLLOW = re.compile(r"\s*[\]}]")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MAY_HOLD_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")

MAX_DEPTH = 64


@dataclass(frozen=True)
class Extraction:
    """What the search found.

    ``value`` is the object; without one, ``problem`` says what was wrong and ``damaged`` is the text of the first
    object that did not parse, ``""`` where there is nothing to mend.
    """

    value: dict[str, object] | None = None
    damaged: str = ""
    problem: str = ""


_NO_OBJECT = Extraction(problem="The answer holds no JSON object.")
_EMPTY = Extraction(problem="The JSON object is empty.")
_TOO_DEEP = Extraction(problem="The JSON object is nested too deeply.")
_CUT_OFF = Extraction(problem="The answer was cut off in the middle of a JSON string.")


def find_object(text: str) -> Extraction:
    """Find the first JSON object of ``text`` that decodes. Never raises.

    An empty one is passed over, for prose speaks of ``{}`` and no handoff is empty.
    """
    kept, position = _NO_OBJECT, 0
    while start := _OBJECT_START.search(text, position):
        end, open_string = _balanced_end(text, start.start())
        if end is None:
            return kept if kept.damaged else _truncated(text, start.start(), open_string)
        found = decode_object(text[start.start() : end])
        if found.value is not None:
            return found
        kept = kept if kept.damaged else found
        position = end
    return kept


def decode_object(text: str) -> Extraction:
    """Decode ``text``, which is one object from its first brace to its last, as strict JSON."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        return _damaged(text, f"The JSON object does not parse: {error.msg} near {near!r}.")
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:
        return _damaged(text, f"The JSON object does not parse: {error}.")
    if not value or _too_deep(value):
        return _TOO_DEEP if value else _EMPTY
    return Extraction(value=_without_surrogates(value, text))


def _damaged(text: str, problem: str) -> Extraction:
    return Extraction(None, text if _QUOTED_KEY.match(text) else "", problem)


def _too_deep(value: object) -> bool:
    """Whether ``value`` is nested deeper than what reads it later (schemas, pretty printing) can follow."""
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
    """Put U+FFFD for every lone surrogate, which no UTF-8 file could hold."""
    if not _MAY_HOLD_SURROGATE.search(source):
        return value
    clean = _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    return cast("dict[str, object]", json.loads(clean))


def _balanced_end(text: str, start: int) -> tuple[int | None, int | None]:
    """Where the object at ``start`` ends; without an end, where the string it was cut off in begins, if in one."""
    depth = 0
    for token in _BRACE_OR_STRING.finditer(text, start):
        kind = token[0][0]
        if kind == '"':
            if not token["closed"]:
                return None, token.start()
            continue
        depth += 1 if kind == "{" else -1
        if depth == 0:
            return token.end(), None
    return None, None


def _truncated(text: str, start: int, open_string: int | None) -> Extraction:
    """An object without an end. One cut off inside a string is not for mending: half a file would be written."""
    if open_string is not None and not _ONLY_CLOSERS_FOLLOW.match(text, open_string + 1):
        return _CUT_OFF
    return _damaged(text[start:], "The JSON object has no end: a closing brace or quote is missing.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number
