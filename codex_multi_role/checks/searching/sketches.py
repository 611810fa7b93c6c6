"""Whether two texts say the same in nearly the same words: copies of one document are one source.

A sketch is the smallest hashes of a text's shingles; what two have in common estimates Jaccard's index of all of them.
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
"""The share in common from which two texts count as one."""
MAX_LOOKUPS = 8
"""Two texts that count as one share, as good as always, one of this many smallest hashes."""
_WORD = re.compile(r"\w+")
Name = TypeVar("Name", bound=Hashable)

Sketch = Sequence[int]


def sketch(text: str) -> list[int]:
    """Of every few words that follow each other, in small letters; a shorter text is one shingle."""
    words = _WORD.findall(text.casefold())
    ends = max(1, len(words) - WORDS_OF_A_SHINGLE + 1)
    shingles = (" ".join(words[start : start + WORDS_OF_A_SHINGLE]) for start in range(ends))
    return sorted({zlib.crc32(shingle.encode("utf-8", "replace")) for shingle in shingles})[:SIZE]


def nearly_same(one: Sketch, other: Sketch) -> bool:
    """Whether texts with these sketches have nearly all in common; of short texts it is known exactly."""
    smallest = set(sorted({*one, *other})[:SIZE])
    return len(smallest & {*one} & {*other}) >= SAME * len(smallest)


def copies(texts: Mapping[Name, str]) -> dict[Name, Name]:
    """The names of the texts that nearly repeat an earlier one, each with the name of that one. Takes linear time."""
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
