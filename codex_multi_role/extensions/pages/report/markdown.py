"""Markdown of a model as a part of a page: all that it says becomes text, and a page loads nothing for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from codex_multi_role.host.spelling import KEPT_IN_PAGES, printable
from codex_multi_role.presentation.result import ShownResult

TOP_LEVEL = 3
"""The level of a first heading in the page, below the heading of its section."""
LOWEST_LEVEL = 6


def result_html(result: ShownResult) -> Markup:
    return markdown_as_html(result.text) if result.is_markdown else Markup("<pre>{}</pre>").format(result.text)


def markdown_as_html(text: str) -> Markup:
    """Render CommonMark and tables. HTML is shown as text, and an image, which a page may not load, as a link."""
    parser = _parser()
    tokens = parser.parse(text)
    _lower_headings(tokens)
    html = parser.renderer.render(tokens, parser.options, {})  # the parser escapes everything
    return Markup(printable(html, keep=KEPT_IN_PAGES))  # now, because the text may name characters: `&#x202e;`


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


def _lower_headings(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + TOP_LEVEL - 1, LOWEST_LEVEL)}"
