"""Foreign texts in Markdown: as code, in which Markdown, HTML, mentions and links have no effect."""

from __future__ import annotations

import re

BACKTICKS = re.compile(r"`+")
PIPE = re.compile(r"(\\*)\|")


def code(line: str) -> str:
    """Format one line as a code span; empty for an empty line."""
    if not line.strip():
        return ""
    fence = "`" * (max(map(len, BACKTICKS.findall(line)), default=0) + 1)
    padding = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def cell(line: str) -> str:
    """Format a line as `code` in a table cell, which a pipe ends unless an odd number of backslashes precedes it."""
    return PIPE.sub(lambda found: f"{found[1]}{found[1]}\\|", code(line))


def table(headings: list[str], rows: list[list[str]], numbers: frozenset[str] = frozenset()) -> list[str]:
    """Return a table's lines; its cells are Markdown."""
    lines = [headings, ["--:" if heading in numbers else "---" for heading in headings], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
