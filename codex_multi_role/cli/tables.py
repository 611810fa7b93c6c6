"""Tables that are right at every width: a row that does not fit continues on the next line, below its headings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from codex_multi_role.presentation.outcome import ASKS, BAD, BUSY, GOOD, IDLE, UNUSED, WARN
from codex_multi_role.presentation.wording import ELLIPSIS, columns_of, cut, first_columns, one_line

if TYPE_CHECKING:
    from rich.text import Text

GAP, INDENT = 2, 2
"""Spaces between two columns, and before the continuation of a row."""
STYLES = {GOOD: "green", BAD: "red", WARN: "yellow", BUSY: "cyan", IDLE: "dim", UNUSED: "dim", ASKS: "yellow"}
"""How a terminal shows a tone."""

Cells = Sequence[str]
Row = Sequence[object]


@dataclass(frozen=True)
class Column:
    """A column whose cells are always whole, for terminals of at least ``from_width`` columns.

    ``text`` and ``path`` are the exceptions: a narrow terminal shortens them to no less than that number of columns, a
    text as `cut` does, a path at its beginning. A cell that ``has_tone`` is drawn in the colour of its row.
    """

    heading: str
    number: bool = False
    text: int = 0
    path: int = 0
    from_width: int = 0
    has_tone: bool = False

    @property
    def least(self) -> int:
        """Columns that it needs; 0 if its cells are always whole."""
        return max(self.text or self.path, len(self.heading)) if self.text or self.path else 0

    def fitted(self, cell: str, width: int) -> str:
        """The cell, aligned, and shortened if it is wider."""
        if columns_of(cell) > width and self.least:
            end = first_columns(cell[::-1], width - len(ELLIPSIS))[::-1]
            cell = ELLIPSIS + end if self.path else cut(cell, width)
        padding = " " * (width - columns_of(cell))
        return padding + cell if self.number else cell + padding


@dataclass(frozen=True)
class PlacedColumn:
    """A column's place in a line: its ``index`` in the table and its ``width``."""

    column: Column
    index: int
    width: int


class Table:
    """The ``columns`` of these ``rows`` on a terminal of ``width``; None: as wide as the cells are."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Cells], width: int | None = None) -> None:
        self._columns = columns
        natural = [max(map(columns_of, cells)) for cells in zip(self.heading_cells, *rows, strict=True)]
        self._lines = _places(columns, natural, width) if width is not None else [_line(columns, natural)]

    @property
    def heading(self) -> list[str]:
        """The lines of the headings."""
        return self.row(self.heading_cells)

    @property
    def heading_cells(self) -> list[str]:
        return [column.heading for column in self._columns]

    def row(self, cells: Cells, tone: str = "") -> list[str]:
        """The lines of one row."""
        return [self._drawn(cells, number, tone) for number in range(len(self._lines))]

    def _drawn(self, cells: Cells, number: int, tone: str) -> str:
        drawn = (_toned(place, cells[place.index], tone) for place in self._lines[number])
        return (" " * (INDENT if number else 0) + (" " * GAP).join(drawn)).rstrip()


def _toned(place: PlacedColumn, cell: str, tone: str) -> str:
    fitted = place.column.fitted(cell, place.width)
    if not place.column.has_tone or not tone:
        return fitted
    return click.style(fitted, **({"dim": True} if tone == IDLE else {"fg": STYLES[tone]}))


def shown_at(columns: Sequence[Column], rows: Iterable[Row], width: int | None) -> tuple[Table, list[list[str]]]:
    """The table of those columns that a terminal of ``width`` shows, and its cells."""
    shown = [index for index, column in enumerate(columns) if width is None or width >= column.from_width]
    cells = [[one_line("" if row[index] is None else row[index]) for index in shown] for row in rows]
    return Table([columns[index] for index in shown], cells, width), cells


def draw_last(columns: Sequence[Column], rows: Sequence[tuple[Row, str]], width: int, lines: int) -> list[Text]:
    """Return the headings, then the last of the ``rows``, each with its style, as many as fit in ``lines``."""
    from rich.text import Text  # here: only a terminal needs it

    table, cells = shown_at(columns, [row for row, _ in rows[-lines:]], width)
    styled = list(zip(cells, (style for _, style in rows[-lines:]), strict=True))[
        -max(1, lines // len(table.heading)) :
    ]
    return [Text("\n".join(table.row(row)), style=style) for row, style in [(table.heading_cells, "bold"), *styled]]


def _line(columns: Sequence[Column], widths: Sequence[int]) -> list[PlacedColumn]:
    return [PlacedColumn(column, index, widths[index]) for index, column in enumerate(columns)]


def _places(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[list[PlacedColumn]]:
    """Fill each line with as many columns as fit at their least width, then widen the ones that were shortened."""
    lines: list[list[PlacedColumn]] = []
    for index, column in enumerate(columns):
        place = PlacedColumn(column, index, min(natural[index], column.least or natural[index]))
        if lines and _spare([*lines[-1], place], width, len(lines) - 1) >= 0:
            lines[-1].append(place)
        else:
            lines.append([place])
    return [_widened(line, natural, _spare(line, width, number)) for number, line in enumerate(lines)]


def _spare(line: Sequence[PlacedColumn], width: int, number: int) -> int:
    used = sum(place.width for place in line) + GAP * (len(line) - 1) + (INDENT if number else 0)
    return width - used


def _widened(line: Sequence[PlacedColumn], natural: Sequence[int], spare: int) -> list[PlacedColumn]:
    """Share ``spare`` columns, among texts first: short ones get what they need, the others equal parts of the rest."""
    widths = {place.index: place.width for place in line}
    for are_paths in (False, True):
        waiting = [place for place in line if bool(place.column.path) is are_paths]
        waiting.sort(key=lambda place: natural[place.index] - place.width)
        for number, place in enumerate(waiting):
            part = min(natural[place.index] - place.width, max(0, spare) // (len(waiting) - number))
            widths[place.index] += part
            spare -= part
    return [PlacedColumn(place.column, place.index, widths[place.index]) for place in line]
