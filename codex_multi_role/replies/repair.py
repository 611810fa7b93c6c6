"""Mend small damage to a JSON object locally: a comma, a quote, a closing brace. No turn is spent on it.

json-repair guesses at the structure only. It is not shown the strings that are whole, for it would take commas and
braces of the code in them for damage; and a guess that loses a word is not taken.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter

from codex_multi_role.replies.extract import decode_object

MAX_REPAIRED_CHARACTERS = 1_000_000
# A string is whole when both of its quotes stand where JSON has them.
_WHOLE_STRING = re.compile(r'(?<=[\[{,:\s])"((?:[^"\\]++|\\.)*+)"(?=\s*(?:[,:\]}]|\s"|$))', re.DOTALL)
_WORD = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[A-Za-z_]\w*", re.DOTALL | re.ASCII)


def repair_object(damaged: str) -> dict[str, object] | None:
    """Return the object that ``damaged`` was meant to be, or None. Only for text that does not parse."""
    if not damaged or len(damaged) > MAX_REPAIRED_CHARACTERS:
        return None
    from json_repair import repair_json

    strings = _Strings()
    hidden = _WHOLE_STRING.sub(strings.hide, damaged)
    try:
        value = repair_json(hidden, return_objects=True, skip_json_loads=True)
        mended = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not _words(hidden) <= _words(mended):
        return None
    return decode_object(strings.show(mended)).value


class _Strings:
    """Stand-ins for the strings of a text: words that occur nowhere else."""

    def __init__(self) -> None:
        self._stem = f"string_{uuid.uuid4().hex}_"
        self._contents: list[str] = []

    def hide(self, found: re.Match[str]) -> str:
        try:
            # Line ends as they are, not escaped, are damage of a harmless kind.
            content = json.loads(f'"{found[1]}"', strict=False)
        except ValueError:
            return found[0]
        self._contents.append(json.dumps(content)[1:-1])
        return f'"{self._stem}{len(self._contents) - 1}_"'

    def show(self, text: str) -> str:
        return re.sub(rf"{self._stem}(\d+)_", lambda found: self._contents[int(found[1])], text)


def _words(text: str) -> Counter[str]:
    """The words of a text and its escaped line ends; Python's None, which becomes null, is no loss."""
    words = Counter(word.casefold() for word in _WORD.findall(text) if word[0] != "\\" or word in ("\\n", "\\t"))
    del words["none"]
    return words
