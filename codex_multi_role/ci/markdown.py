"""Texts of others in Markdown: as code, in which neither Markdown nor HTML, mentions and links mean anything."""

from __future__ import annotations

import re

BACKTICKS = re.compile(r"`+")
PIPE = re.compile(r"(\\*)\|")


def code(line: str) -> str:
    """One line as a code span; it says nothing where the line is empty."""
    if not line.strip():
        return ""
    fence = "`" * (max(map(len, BACKTICKS.findall(line)), default=0) + 1)
    padding = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{padding}{line}{padding}{fence}"


def cell(line: str) -> str:
    """`code` for the cell of a table, where a pipe ends the cell unless an odd number of backslashes is before it."""
    return PIPE.sub(lambda found: f"{found[1]}{found[1]}\\|", code(line))


def table(headings: list[str], rows: list[list[str]], numbers: frozenset[str] = frozenset()) -> list[str]:
    """A table's lines; its cells are Markdown."""
    lines = [headings, ["--:" if heading in numbers else "---" for heading in headings], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
