"""Tables on stdout: as wide as the terminal, or as wide as the content if it is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Literal

from codex_multi_role.cli.streams import put_line
from codex_multi_role.presentation.wording import one_line

UNLIMITED = 10_000


def put_table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[str] = ()) -> None:
    """Print ``rows`` below ``headings``; columns in ``numbers`` are right-aligned, the first one is never cut."""
    from rich.console import Console  # here: only commands that print a table load rich
    from rich.table import Table
    from rich.text import Text

    cells = [[one_line("" if cell is None else cell) for cell in row] for row in rows]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading in headings:
        name_width = max(len(row[0]) for row in cells) if cells and heading == headings[0] else None
        justify: Literal["left", "right"] = "right" if heading in set(numbers) else "left"
        table.add_column(heading, justify=justify, no_wrap=True, overflow="ellipsis", min_width=name_width)
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console() if sys.stdout.isatty() else Console(width=UNLIMITED, no_color=True, color_system=None)
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        put_line(line.rstrip())
