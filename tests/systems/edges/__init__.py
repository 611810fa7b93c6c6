"""The edges of the diagrams that the systems were described by, one a line: each is to have a test that walks it."""

from __future__ import annotations

from pathlib import Path

Edge = tuple[str, ...]


def edges_of(system: str) -> set[Edge]:
    """Those of ``<system>.txt``, whose first line names the columns; what is missing at a line's end is empty."""
    heading, *lines = Path(__file__).with_name(f"{system}.txt").read_text(encoding="utf-8").splitlines()
    columns = heading.count("|") + 1
    found = [tuple(part.strip() for part in line.split("|")) for line in lines]
    return {(*edge, *[""] * (columns - len(edge))) for edge in found}
