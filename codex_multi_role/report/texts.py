"""Texts as they go into a page: without secrets, not longer than all of them together allow, harmless as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from typing import Any

from codex_multi_role.redaction import Redactor

ALL_BYTES = 8_000_000
"""What the texts of a run may come to before they are cut shorter: with what JSON adds, the page stays below 15 MB."""
LONGEST, SHORTEST = 200_000, 4_000
"""Where a text is cut at most, and where it is not cut, however many there are."""
MARGIN = 8_192
"""What is read beyond a cut, so that a secret that lies across it is known for one."""
_NOT_IN_A_SCRIPT = "<>&\u2028\u2029"


def cut_length(sizes: Iterable[int]) -> int:
    """The length at which texts of these sizes are cut to come to no more than `ALL_BYTES` together."""
    left, ordered = ALL_BYTES, sorted(sizes)
    for position, size in enumerate(ordered):
        share = left // (len(ordered) - position)
        if size > share:
            return max(SHORTEST, min(LONGEST, share))
        left -= size
    return LONGEST


@dataclass(frozen=True)
class Text:
    """``of``: how many bytes the whole has, where this is only its beginning."""

    text: str
    of: int | None = None


@dataclass(frozen=True)
class Reader:
    """Reads the files of the run in ``folder``. What is exact there loses its secrets here: a report is passed on.

    Texts for people have been stored without them.
    """

    folder: Path
    redact: Redactor
    cut_at: int

    def text(self, path: Path, *, exact: bool = False) -> Text | None:
        """None for a file that is not there, cannot be read, or is empty. ``exact``: it is stored with its secrets."""
        try:
            size = path.stat().st_size
            with path.open(encoding="utf-8", errors="replace", newline="") as file:
                read = file.read(self.cut_at + MARGIN)
        except OSError:
            return None
        if len(read) <= self.cut_at:
            return Text(self.redact(read) if exact else read) if read else None
        beginning = read[: self.cut_at]
        if exact:  # a secret that lies across the cut is known for one in what was read beyond it
            beginning = commonprefix([self.redact(beginning), self.redact(read)])  # noqa: RUF071 - of letters
        return Text(beginning, size)

    def cut(self, text: str) -> Text:
        """A text that lies in a file among others."""
        whole = len(text.encode("utf-8", "replace"))
        return Text(text) if len(text) <= self.cut_at else Text(text[: self.cut_at], whole)

    def value(self, path: Path, longest: int | None = None) -> Any:  # noqa: ANN401 - whatever JSON is there
        """The JSON of a file that is not too long to be shown whole, without secrets; None for any other.

        ``longest``: how long it may be where only a little of it is shown, in bytes.
        """
        try:
            if path.stat().st_size > (longest or self.cut_at):
                return None
            return self.redact.within(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):
            return None

    def name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def embedded(value: object) -> str:
    """``value`` as JSON that may stand in a script element: nothing in it ends that, or begins anything else.

    What Python takes for numbers and browsers do not (``NaN``, ``1e999``) becomes text.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(value), parse_constant=str), ensure_ascii=False)
    for sign in _NOT_IN_A_SCRIPT:
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
