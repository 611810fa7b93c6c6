"""A research report as Markdown, and as one HTML page that loads nothing and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from codex_multi_role.extensions.research.citations import with_citations
from codex_multi_role.extensions.research.searching.addresses import is_web_address
from codex_multi_role.reading.json_types import Json

MOST_MISSING = 50
_CITES = re.compile(r"\[cite", re.IGNORECASE)
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")
_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "body{color:#222;background:#fff}"
    "h1,h2,h3{line-height:1.25}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;"
    "padding:.3rem .5rem;text-align:left;vertical-align:top}a{color:#0b57a4}li:target{background:#fff3c4}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8ab8f0}"
    "li:target{background:#443a12}}"
)


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
    about = f"{plain(research.date)}, depth {plain(research.depth)}, {len(research.sources)} sources"
    yield from (f"# {plain(research.question)}", "", about, "")
    for chapter in research.chapters:
        yield from (f"## {plain(chapter.title)}", "")
        if chapter.question and chapter.question != chapter.title:
            yield from (f"*{plain(chapter.question)}*", "")
        yield from (with_citations(chapter.body, research.known, written).strip(), "")
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
    if not research.facts:
        return
    yield from ("## Facts", "", "| claim | confidence | sources | notes |", "|---|---|---|---|")
    for fact in research.facts:
        cells = [plain(fact["claim"]), f"{fact['confidence']:.2f}", " ".join(map(written, fact["sources"])),
                 plain(fact["notes"] if fact["is_consistent"] else f"not consistent: {fact['notes']}")]  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield ""


def _discrepancies(research: Research, written: Any) -> Iterator[str]:  # noqa: ANN401
    if not research.discrepancies:
        return
    yield from ("## Where sources disagree", "")
    for each in research.discrepancies:
        yield (
            f"- **{plain(each['topic'])}**: {plain(each['description'])} Preferred, by "
            f"{plain(each['resolution_basis'])}: {plain(each['preferred_claim'])} {plain(each['notes'])} "
            f"{' '.join(map(written, each['sources']))}"
        )
    yield ""


def _missing(research: Research) -> Iterator[str]:
    gaps = [*research.missing]
    for chapter in research.chapters:
        gaps += [f"{chapter.title}: {problem}" for problem in chapter.problems]
        gaps += [
            f"{chapter.title}: a citation of {name}, which is not a source, was removed" for name in chapter.unresolved
        ]
    if gaps:
        yield from ("## What is missing", "")
        yield from (f"- {plain(each)}" for each in gaps[:MOST_MISSING])
        if len(gaps) > MOST_MISSING:
            yield f"- {len(gaps) - MOST_MISSING} more: see findings.json"
        yield ""


def page(research: Research) -> str:
    """The whole report; a citation links to its source. HTML written by models is shown as text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    body = markdown.render("\n".join(body_lines(research, lambda name: f"[{name}](#source-{name})")))
    sources = "\n".join(map(_source, research.sources))
    return (
        '<!doctype html>\n<html><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(research.question)}</title><style>{_STYLE}</style></head><body>\n"
        f"{body}<h2>Sources</h2>\n<ul>\n{sources}\n</ul>\n</body></html>\n"
    )


def _source(source: dict[str, object]) -> str:
    address = str(source["address"])
    place = escape(address)
    if is_web_address(address):
        place = f'<a href="{place}" rel="noopener noreferrer">{place}</a>'
    parts = [escape(str(source["title"])), place, escape(str(source["date"]))]
    return f'<li id="source-{source["id"]}"><b>{source["id"]}</b> {", ".join(part for part in parts if part)}</li>'
