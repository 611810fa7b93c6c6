"""The parts of a Markdown document that a reader sees: headings, links, diagrams, names in code font."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_MARKUP = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)


@dataclass
class MarkdownDocument:
    """``anchors`` are the headings' names in links, ``diagrams`` the Mermaid blocks, ``codes`` the inline code.

    ``sections`` are the headings with the text below each, including subsections, without headings and comments.
    ``text`` is all of that text.
    """

    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    sections: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""

    def section(self, heading: str) -> str | None:
        """The text of all sections with that heading; None without such a section."""
        name = heading.strip().casefold()
        found = [text for each, text in self.sections if each.strip().casefold() == name]
        return "\n".join(found) if found else None

    @property
    def anchors(self) -> set[str]:
        seen: dict[str, int] = {}
        found = set()
        for heading in self.headings:
            name = _NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")
            number = seen[name] = seen.get(name, -1) + 1
            found.add(f"{name}-{number}" if number else name)
        return found


def read_markdown(text: str) -> MarkdownDocument:
    """Parse CommonMark with tables, as GitHub shows it."""
    document = MarkdownDocument()
    tokens = _parser().parse(text)
    document.sections, document.text = _sections(tokens)
    document.headings = [heading for heading, _ in document.sections]
    for token in tokens:
        if token.type == "fence" and token.info.split()[:1] == ["mermaid"]:
            document.diagrams.append(token.content)
        for part in (each for child in token.children or () for each in (child, *(child.children or ()))):
            if part.type in ("link_open", "image"):
                document.links.append(str(part.attrGet("href" if part.type == "link_open" else "src") or ""))
            if part.type == "code_inline":
                document.codes.append(part.content.strip())
    return document


def _sections(tokens: Sequence[Token]) -> tuple[list[tuple[str, str]], str]:
    levels: list[int] = []
    sections: list[tuple[str, list[str]]] = []
    whole: list[str] = []
    open_sections: list[int] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            level = int(token.tag[1:])
            open_sections = [each for each in open_sections if levels[each] < level]
            open_sections.append(len(sections))
            levels.append(level)
            sections.append(("".join(part.content for part in tokens[index + 1].children or ()), []))
        elif not (index and tokens[index - 1].type == "heading_open"):
            text = _text(token)
            whole.append(text)
            for each in open_sections:
                sections[each][1].append(text)
    return [(heading, "\n".join(filter(None, texts))) for heading, texts in sections], "\n".join(filter(None, whole))


def _text(token: Token) -> str:
    """The visible text of a block, without comments and the addresses of links."""
    if token.type == "inline":
        return "".join(" " if part.type.endswith("break") else part.content for part in token.children or ()
                       if part.type != "html_inline")  # fmt: skip
    return _MARKUP.sub(" ", token.content).strip() if token.type == "html_block" else token.content


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")
