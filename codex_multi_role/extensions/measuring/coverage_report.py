"""Read coverage.py's JSON report, which a sandboxed command left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from codex_multi_role.checks.contract import ResultPart

MAX_PLACES = 4_000
"""Maximum number of lines, and of branches, listed per file; the rest is counted."""


class Places(ResultPart):
    """Places in ``file``: ``lines`` as ``3-5, 9``, ``branches`` as ``4->9, 12->exit``."""

    file: str
    lines: str
    branches: str


@dataclass(frozen=True)
class Measured:
    """``percent`` of all lines and branches together, None if nothing was measured.

    Fully covered files are not in ``uncovered``; ``unseen`` are the files of which no line was executed.
    """

    percent: float | None = None
    uncovered: tuple[Places, ...] = ()
    unseen: frozenset[str] = frozenset()


NOTHING = Measured()


@dataclass(frozen=True)
class Reached:
    """What one test reached: lines ``(file, line)`` and branches ``(file, from, to)``."""

    lines: frozenset[tuple[str, int]]
    branches: frozenset[tuple[str, int, int]]

    @property
    def places(self) -> list[Places]:
        """By file."""
        found = []
        for name in sorted({file for file, _ in self.lines}):
            lines = [line for file, line in self.lines if file == name]
            branches = [branch_text(*ends) for file, *ends in sorted(self.branches) if file == name]
            found.append(Places(file=name, lines=listed_lines(lines), branches=_listed(branches)))
        return found


def parse_coverage(report: bytes) -> Measured:
    """Read the report of ``coverage json``. Raises ValueError if it is invalid.

    Source: coverage.py, JSON report, format 3.
    """
    try:
        document = json.loads(report)
        files = [_uncovered(name, file) for name, file in sorted(document["files"].items())]
        percent = float(document["totals"]["percent_covered"])
        missed = {name: file for name, file in document["files"].items() if file["missing_lines"]}
        unseen = {name for name, file in missed.items() if not file["executed_lines"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the coverage report cannot be read: {error!r}") from error
    return Measured(round(percent, 2), tuple(file for file in files if file.lines or file.branches), frozenset(unseen))


def parse_reached(report: bytes) -> dict[str, Reached]:
    """Read the report of ``plugins/codex_multi_role_reached.py``. Raises ValueError if it is invalid."""
    try:
        return {str(test): _reached(files) for test, files in json.loads(report).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the coverage of each test cannot be read: {error!r}") from error


def _reached(files: dict[str, Any]) -> Reached:
    return Reached(
        frozenset((name, int(line)) for name, file in files.items() for line in file["lines"]),
        frozenset((name, int(start), int(end)) for name, file in files.items() for start, end in file["branches"]),
    )


def _uncovered(name: str, file: dict[str, Any]) -> Places:
    missing = [branch_text(*branch) for branch in file.get("missing_branches", [])]
    return Places(file=name, lines=listed_lines(file["missing_lines"]), branches=_listed(missing))


def branch_text(start: int, end: int) -> str:
    """Format a branch; in coverage.py, a jump to a negative line leaves the function."""
    return f"{start}->{'exit' if end < 0 else end}"


def _ranges(lines: list[int]) -> list[str]:
    """Group consecutive lines, which differ from their index in the list by the same number."""
    runs = groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0])
    ends = [(found[0], found[-1]) for _, run in runs if (found := [line for _, line in run])]
    return [str(first) if first == last else f"{first}-{last}" for first, last in ends]


def listed_lines(lines: list[int]) -> str:
    return _listed(_ranges(lines))


def _listed(places: list[str]) -> str:
    more = len(places) - MAX_PLACES
    return ", ".join(places[:MAX_PLACES]) + (f" and {more} more" if more > 0 else "")
