"""Find texts in nearly the same words: copies of one document are one source.

A sketch is the smallest hashes of a text's shingles; what two have in common estimates the Jaccard index of all.
Source: A. Broder, On the resemblance and containment of documents (1997).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

WORDS_OF_A_SHINGLE = 3
SIZE = 128
SAME = 0.8
"""Minimum share in common for two texts to count as one."""
MAX_LOOKUPS = 8
"""Two texts that count as one almost always share one of this many smallest hashes."""
_WORD = re.compile(r"\w+")
Name = TypeVar("Name", bound=Hashable)

Sketch = Sequence[int]


def sketch(text: str) -> list[int]:
    """Hash every few consecutive words, in lower case; a shorter text is one shingle."""
    words = _WORD.findall(text.casefold())
    ends = max(1, len(words) - WORDS_OF_A_SHINGLE + 1)
    shingles = (" ".join(words[start : start + WORDS_OF_A_SHINGLE]) for start in range(ends))
    return sorted({zlib.crc32(shingle.encode("utf-8", "replace")) for shingle in shingles})[:SIZE]


def nearly_same(one: Sketch, other: Sketch) -> bool:
    """Whether the texts of these sketches have nearly everything in common; exact for short texts."""
    smallest = set(sorted({*one, *other})[:SIZE])
    return len(smallest & {*one} & {*other}) >= SAME * len(smallest)


def copies(texts: Mapping[Name, str]) -> dict[Name, Name]:
    """The names of texts that nearly repeat an earlier one, each with the name of that one. Takes linear time."""
    found: dict[Name, Name] = {}
    first: dict[int, tuple[Name, Sketch]] = {}
    for name, text in texts.items():
        own = sketch(text)
        for number in own[:MAX_LOOKUPS]:
            earlier, other = first.setdefault(number, (name, own))
            if earlier != name and nearly_same(own, other):
                found[name] = earlier
                break
    return found
