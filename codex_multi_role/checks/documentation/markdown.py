"""What a Markdown document consists of, as a reader sees it: headings, links, diagrams, names in code font."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass
class Document:
    """``anchors`` are the headings' names in links, ``diagrams`` the Mermaid blocks, ``codes`` the inline code."""

    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    diagrams: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)

    @property
    def anchors(self) -> set[str]:
        seen: dict[str, int] = {}
        found = set()
        for heading in self.headings:
            name = _NOT_IN_ANCHORS.sub("", heading.strip().lower()).replace(" ", "-")
            number = seen[name] = seen.get(name, -1) + 1
            found.add(f"{name}-{number}" if number else name)
        return found


def read_markdown(text: str) -> Document:
    """By CommonMark with tables, as GitHub shows it."""
    document = Document()
    tokens = _parser().parse(text)
    for index, token in enumerate(tokens):
        if token.type == "fence" and token.info.split()[:1] == ["mermaid"]:
            document.diagrams.append(token.content)
        if token.type == "heading_open":
            document.headings.append("".join(part.content for part in tokens[index + 1].children or ()))
        for part in _parts(token):
            if part.type in ("link_open", "image"):
                document.links.append(str(part.attrGet("href" if part.type == "link_open" else "src") or ""))
            if part.type == "code_inline":
                document.codes.append(part.content.strip())
    return document


def _parts(token: Token) -> Iterator[Token]:
    for part in token.children or ():
        yield part
        yield from part.children or ()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")
