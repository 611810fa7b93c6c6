"""Citations, ``[cite:S1]`` or ``[cite:S1, S2]``: the sources that a text names, and the check ``prose``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Literal

from pydantic import Field

from codex_multi_role.checks import CheckContext, CheckOptions, CheckResult, declare_check, no_time

_CITATION = re.compile(r"\[cite:(?:([^\[\]\n]*)\])?", re.IGNORECASE)
"""An unclosed citation cites nothing."""
_BETWEEN = re.compile(r"[\s,;]+")
_WORD = re.compile(r"\w+(?:['\u2019.,-]\w+)*")
NAMELESS = "(nothing)"


class ProseOptions(CheckOptions):
    """``sources``: the ids that may be cited. ``max_words``: None is unlimited."""

    text: str = Field(description="the text")
    sources: list[str] = Field(default=[], description="a list of ids")
    min_words: int = Field(default=0, ge=0, description="a number")
    max_words: int | None = Field(default=None, ge=1, description="a number")


class ProseResult(CheckResult):
    """``words`` excludes citations; ``unresolved`` are ids of unknown sources."""

    bad = ("unfit",)

    status: Literal["fits", "unfit"]
    words: int
    cited: list[str]
    unresolved: list[str]
    problems: list[str]


@declare_check(options=ProseOptions, result=ProseResult, max_seconds=no_time, read_only=True)
def check_prose(context: CheckContext) -> ProseResult:
    """Judge the length of a text and its citations. Raises UsageError."""
    options = context.read_options(ProseOptions, "prose")
    words, cited = count_words(options.text), citations_in(options.text)
    unresolved = [each for each in cited if each not in options.sources]
    problems = []
    if words < options.min_words:
        problems.append(f"it has {words} words, at least {options.min_words} are required")
    if options.max_words is not None and words > options.max_words:
        problems.append(f"it has {words} words, at most {options.max_words} are required")
    problems += [f"it cites {each}, which is not a source" for each in unresolved]
    return ProseResult(
        status="unfit" if problems else "fits", words=words, cited=cited, unresolved=unresolved, problems=problems
    )


def count_words(text: str) -> int:
    """The number of words, citations excluded."""
    return sum(1 for _ in _WORD.finditer(_CITATION.sub(" ", text)))


def citations_in(text: str) -> list[str]:
    """The cited ids, each once, in order of first occurrence; an empty citation is `NAMELESS`."""
    return list(dict.fromkeys(each for citation in _CITATION.finditer(text) for each in _ids(citation)))


def with_citations(text: str, known: Collection[str], written: Callable[[str], str]) -> str:
    """Replace each citation by its ``known`` ids as ``written`` formats them, or by a space if none is known.

    Without the space, the text around it could form a new citation.
    """
    return _CITATION.sub(lambda each: " ".join(written(name) for name in _ids(each) if name in known) or " ", text)


def _ids(citation: re.Match[str]) -> list[str]:
    return [each for each in _BETWEEN.split(citation[1] or "") if each] or [NAMELESS]
