"""Whether two texts say the same in nearly the same words: copies of one document are one source."""

from __future__ import annotations

import re

WORDS_OF_A_SHINGLE = 3
SAME = 0.8
"""The share of shingles in common from which two texts count as one."""
_WORD = re.compile(r"\w+")

Shingles = frozenset[str]


def shingles(text: str) -> Shingles:
    """Every few words that follow each other, in small letters; a shorter text is one shingle."""
    words = _WORD.findall(text.casefold())
    ends = max(1, len(words) - WORDS_OF_A_SHINGLE + 1)
    return frozenset(" ".join(words[start : start + WORDS_OF_A_SHINGLE]) for start in range(ends))


def nearly_same(one: Shingles, other: Shingles) -> bool:
    """By Jaccard's index: what they have in common, of all that either has."""
    return len(one & other) >= SAME * len(one | other)
