"""Which language a text is in, by the library py3langid (extra ``[research]``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from codex_multi_role.errors import UsageError

FEWEST_LETTERS = 40
"""Less is too little to tell by."""
LOOKED_AT = 4_000
NO_LANGUAGE = "zxx"
_LETTERS = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str:
    """The ISO 639-1 code, or empty where there is too little to tell by. Raises UsageError without the library."""
    start = text[:LOOKED_AT]
    if len(_LETTERS.findall(start)) < FEWEST_LETTERS:
        return ""
    code = str(_identifier().classify(start)[0])
    return "" if code == NO_LANGUAGE else code


@lru_cache(maxsize=1)
def _identifier() -> Any:  # noqa: ANN401 - the library has no types
    try:
        import py3langid
    except ImportError as error:
        hint = "pip install 'codex-multi-role[research]', or leave the language out."
        raise UsageError("a filter by language needs py3langid, which is not installed", hint) from error
    return py3langid
