"""Detect a text's language by the library py3langid (extra ``[research]``)."""

from __future__ import annotations

import re

FEWEST_LETTERS = 40
"""Shorter texts are too short to detect a language."""
LOOKED_AT = 4_000
NO_LANGUAGE = "zxx"
_LETTERS = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str:
    """The ISO 639-1 code, or empty if the text is too short to tell. Raises ImportError without the library."""
    import py3langid  # imported here: it takes a quarter of a second, and most searches accept every language

    start = text[:LOOKED_AT]
    if len(_LETTERS.findall(start)) < FEWEST_LETTERS:
        return ""
    code = str(py3langid.classify(start)[0])
    return "" if code == NO_LANGUAGE else code
