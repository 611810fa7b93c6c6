"""Texts for the page: without secrets, cut to a common limit, and safe as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from typing import Any

from codex_multi_role.host.redaction import Redactor

ALL_BYTES = 8_000_000
"""Total size of a run's texts above which they are cut shorter: with JSON's overhead, the page stays below 15 MB."""
LONGEST, SHORTEST = 200_000, 4_000
"""Maximum length of a text, and the length to which texts are never cut, however many there are."""
MARGIN = 8_192
"""Characters read beyond a cut, so that a secret across the cut is recognized."""
_UNSAFE_IN_SCRIPT = "<>&\u2028\u2029"


def cut_length(sizes: Iterable[int]) -> int:
    """Return the length to which texts of these sizes are cut, so that together they stay within `ALL_BYTES`."""
    left, ordered = ALL_BYTES, sorted(sizes)
    for position, size in enumerate(ordered):
        share = left // (len(ordered) - position)
        if size > share:
            return max(SHORTEST, min(LONGEST, share))
        left -= size
    return LONGEST


@dataclass(frozen=True)
class Text:
    """``of``: size of the whole in bytes, if this is only the beginning."""

    text: str
    of: int | None = None


@dataclass(frozen=True)
class Reader:
    """Reads the files of the run in ``folder``. Exact files are redacted here, because a report is passed on.

    Texts for people are already stored without secrets.
    """

    folder: Path
    redact: Redactor
    cut_at: int

    def text(self, path: Path, *, exact: bool = False) -> Text | None:
        """Read a file; None if it is not found, unreadable or empty. ``exact``: it is stored with its secrets."""
        try:
            size = path.stat().st_size
            with path.open(encoding="utf-8", errors="replace", newline="") as file:
                read = file.read(self.cut_at + MARGIN)
        except OSError:
            return None
        if len(read) <= self.cut_at:
            return Text(self.redact(read) if exact else read) if read else None
        beginning = read[: self.cut_at]
        if exact:  # what was read beyond the cut shows that a secret lies across it
            beginning = commonprefix([self.redact(beginning), self.redact(read)])  # noqa: RUF071 - of characters
        return Text(beginning, size)

    def cut(self, text: str) -> Text:
        """Cut a text that is stored in one file with others."""
        whole = len(text.encode("utf-8", "replace"))
        return Text(text) if len(text) <= self.cut_at else Text(text[: self.cut_at], whole)

    def value(self, path: Path, longest: int | None = None) -> Any:  # noqa: ANN401 - any JSON value
        """Read a JSON file without secrets; None if it is unreadable or too long to be shown whole.

        ``longest``: the limit in bytes if only a little of it is shown.
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
    """Encode ``value`` as JSON that is safe in a script element: nothing in it ends the element or begins another.

    Numbers that Python accepts but browsers do not (``NaN``, ``1e999``) become text.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(value), parse_constant=str), ensure_ascii=False)
    for sign in _UNSAFE_IN_SCRIPT:
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
