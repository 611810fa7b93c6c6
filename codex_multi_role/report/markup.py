"""HTML in pieces. `Markup.format` escapes all values; nothing else may turn a text into a piece."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from codex_multi_role.presentation.wording import clock

ASSETS = Path(__file__).parent / "assets"
NOTHING = Markup()


def asset(name: str) -> Markup:
    """Read a file of the package."""
    return Markup((ASSETS / name).read_text(encoding="utf-8"))


def joined(pieces: Iterable[Markup], between: str = "") -> Markup:
    return Markup(between).join(pieces)


def chip(words: str, tone: str) -> Markup:
    return Markup('<span class="chip {}">{}</span>').format(tone, words)


def time(at: str) -> Markup:
    """Render a moment in local time; nothing for an unknown one."""
    if not at:
        return NOTHING
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(at, clock(at))


def scrolling(label: str, inside: Markup) -> Markup:
    """Wrap what may be wider than the page, so that the keyboard can reach and scroll it."""
    piece = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">\n{}\n</div>\n')
    return piece.format(label, inside)


def table(label: str, headings: Iterable[tuple[str, str]], rows: Iterable[Iterable[object]]) -> Markup:
    """Render a table. ``headings``: name and class of each column; the first cell of a row is its heading."""
    columns = list(headings)
    head = joined(Markup('<th scope="col" class="{}">{}</th>').format(kind, name) for name, kind in columns)
    body = joined(_row([kind for _, kind in columns], list(row)) for row in rows)
    piece = Markup("<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>")
    return scrolling(label, piece.format(head, body))


def _row(kinds: list[str], cells: list[object]) -> Markup:
    first = Markup('<th scope="row">{}</th>').format(cells[0])
    pairs = zip(kinds[1:], cells[1:], strict=True)
    others = joined(Markup('<td class="{}">{}</td>').format(kind, cell) for kind, cell in pairs)
    return Markup("<tr>{}{}</tr>\n").format(first, others)
