"""A research report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codex_multi_role.reading.json_types import Json
from codex_multi_role.systems.research.citations import with_citations

MOST_MISSING = 50
_CITES = re.compile(r"\[cite", re.IGNORECASE)
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")


@dataclass(frozen=True)
class Chapter:
    """The summary, or a section on a ``question``. ``unresolved``: the ids of unknown sources that its body cites."""

    title: str
    question: str
    body: str
    problems: list[str]
    unresolved: list[str]


@dataclass(frozen=True)
class Research:
    """The content of a report; ``missing``: its gaps that a reader must know about."""

    question: str
    depth: str
    date: str
    chapters: list[Chapter]
    facts: list[Json]
    discrepancies: list[Json]
    sources: list[Json]
    missing: list[str]

    @property
    def known(self) -> list[str]:
        """The ids that a citation may name."""
        return [source["id"] for source in self.sources]


def as_markdown(research: Research) -> str:
    """The whole report. Citations stay as ``[cite:S1]``, each of a listed source."""
    return "\n".join([*body_lines(research, cite), "## Sources", "", *source_lines(research)]) + "\n"


def body_lines(research: Research, written: Any) -> Iterator[str]:  # noqa: ANN401 - a function of an id
    """All lines except the sources; ``written`` formats a cited id."""
    yield f"# {plain(research.question)}"
    yield ""
    yield f"{plain(research.date)}, depth {plain(research.depth)}, {len(research.sources)} sources"
    yield ""
    for chapter in research.chapters:
        yield f"## {plain(chapter.title)}"
        yield ""
        if chapter.question and chapter.question != chapter.title:
            yield f"*{plain(chapter.question)}*"
            yield ""
        yield with_citations(chapter.body, research.known, written).strip()
        yield ""
    yield from _facts(research, written)
    yield from _discrepancies(research, written)
    yield from _missing(research)


def source_lines(research: Research) -> Iterator[str]:
    for source in research.sources:
        parts = [plain(source["title"]), plain(source["address"]), plain(source["date"])]
        copies = [f"also as {', '.join(map(plain, source['duplicates']))}"] if source["duplicates"] else []
        yield f"- **{source['id']}** {', '.join(part for part in (*parts, *copies) if part)}"


def cite(name: str) -> str:
    return f"[cite:{name}]"


def plain(text: object) -> str:
    """``text`` on one line, escaped so that nothing in it is Markdown or a citation."""
    return _MARKS.sub(r"\\\1", _CITES.sub("(cite", " ".join(str(text).split())))


def _facts(research: Research, written: Any) -> Iterator[str]:  # noqa: ANN401
    if research.facts:
        yield from ("## Facts", "", "| claim | confidence | sources | notes |", "|---|---|---|---|")
    for fact in research.facts:
        cells = [plain(fact["claim"]), f"{fact['confidence']:.2f}", " ".join(map(written, fact["sources"])),
                 plain(fact["notes"] if fact["is_consistent"] else f"not consistent: {fact['notes']}")]  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    if research.facts:
        yield ""


def _discrepancies(research: Research, written: Any) -> Iterator[str]:  # noqa: ANN401
    if research.discrepancies:
        yield from ("## Where sources disagree", "")
    for each in research.discrepancies:
        yield (
            f"- **{plain(each['topic'])}**: {plain(each['description'])} Preferred, by "
            f"{plain(each['resolution_basis'])}: {plain(each['preferred_claim'])} {plain(each['notes'])} "
            f"{' '.join(map(written, each['sources']))}"
        )
    if research.discrepancies:
        yield ""


def _missing(research: Research) -> Iterator[str]:
    gaps = [*research.missing, *_shortfalls(research)]
    if gaps:
        yield from ("## What is missing", "")
        yield from (f"- {plain(each)}" for each in gaps[:MOST_MISSING])
        if len(gaps) > MOST_MISSING:
            yield f"- {len(gaps) - MOST_MISSING} more: see findings.json"
        yield ""


def _shortfalls(research: Research) -> Iterator[str]:
    for chapter in research.chapters:
        yield from (f"{chapter.title}: {problem}" for problem in chapter.problems)
        yield from (
            f"{chapter.title}: a citation of {name}, which is no source, was removed" for name in chapter.unresolved
        )
