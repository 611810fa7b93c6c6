"""What coverage.py measured, from the JSON report that a sandboxed command left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import Any

MAX_PLACES = 400
"""So many lines, and so many branches, are named of a file; the rest is counted."""


@dataclass(frozen=True)
class Uncovered:
    """What no test reached in ``file``: ``lines`` as ``3-5, 9``, ``branches`` as ``4->9, 12->exit``."""

    file: str
    lines: str
    branches: str


@dataclass(frozen=True)
class Measured:
    """``percent`` of all lines and branches together; files that are covered whole are not in ``uncovered``."""

    percent: float = 0.0
    uncovered: tuple[Uncovered, ...] = ()


NOTHING = Measured()


def parse_coverage(report: bytes) -> Measured:
    """Read the report of ``coverage json``. Raises ValueError if it is none.

    Source: coverage.py, JSON report, format 3.
    """
    try:
        document = json.loads(report)
        files = [_uncovered(name, file) for name, file in sorted(document["files"].items())]
        percent = float(document["totals"]["percent_covered"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the coverage report cannot be read: {error!r}") from error
    return Measured(round(percent, 2), tuple(file for file in files if file.lines or file.branches))


def _uncovered(name: str, file: dict[str, Any]) -> Uncovered:
    missing = [_branch(*branch) for branch in file.get("missing_branches", [])]
    return Uncovered(name, _listed(_ranges(file["missing_lines"])), _listed(missing))


def _branch(start: int, end: int) -> str:
    """A jump to a negative line is one out of the function (coverage.py)."""
    return f"{start}->{'exit' if end < 0 else end}"


def _ranges(lines: list[int]) -> list[str]:
    """Lines that follow each other differ from their place in the list by the same number."""
    runs = groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0])
    ends = [(found[0], found[-1]) for _, run in runs if (found := [line for _, line in run])]
    return [str(first) if first == last else f"{first}-{last}" for first, last in ends]


def _listed(places: list[str]) -> str:
    more = len(places) - MAX_PLACES
    return ", ".join(places[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")
