"""What a run did, as the tree that leads through its page: step, task, turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from codex_multi_role.extensions.pages.report.entries import Entries, TimedPart
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ASKS, BAD, BUSY, GOOD, IDLE, UNUSED, WARN, tone_of
from codex_multi_role.presentation.pieces import ReportedTurn, WorkPiece
from codex_multi_role.presentation.wording import duration, one_line, seconds_between

OPEN_BELOW = 60
"""Number of entries up to which all branches are open at first; otherwise, as many that have not ended well."""
MOST_PARTS = 100
"""Parts of a branch above which they are divided into ranges of that many."""
RANGE = "~"
TONES = {
    BAD: "failed",
    ASKS: "waits for you",
    WARN: "stopped or flawed",
    BUSY: "at work",
    GOOD: "completed",
    UNUSED: "skipped",
    IDLE: "other",
}
"""In words, the worst first."""

ToneOf = Callable[[WorkPiece], str]
"""How a piece of the run is doing: `Course.tone_of`."""


@dataclass(frozen=True)
class Leaf:
    """``id``: that of the entry to which it leads."""

    id: str
    label: str
    tone: str
    about: str = ""


@dataclass(frozen=True)
class Branch:
    """A visit of a step, a task of it, or a range of them. ``id``: its key; ``count``: of its parts.

    ``find_parts``: returns what it consists of, in order.
    """

    id: str
    label: str
    tone: str
    about: str
    is_open: bool
    count: int
    find_parts: Callable[[], list[Branch | Leaf]]

    @cached_property
    def parts(self) -> list[Branch | Leaf]:
        """Read when it is opened: a run may have ten thousand of them."""
        return self.find_parts()


class RunTree:
    """Everything that began, below the piece of work that it belongs to.

    ``shown``: the ids of entries or branches that are to be seen, whatever else is closed.
    """

    def __init__(self, course: Course, entries: Entries, tone: ToneOf, *shown: str) -> None:
        self._course, self._tone = course, tone
        self._entries = entries
        self._is_small = len(entries) <= OPEN_BELOW
        self._left = OPEN_BELOW
        self._opened = {*shown, *(branch for each in shown if each for branch in self.path_to(each))}

    @cached_property
    def _below(self) -> Mapping[str, Sequence[TimedPart]]:
        below: dict[str, list[TimedPart]] = {}
        for part in self._entries.parts:
            below.setdefault(part.piece, []).append(part)
        return below

    @cached_property
    def parts(self) -> list[Branch | Leaf]:
        """Those of the run itself."""
        return self._parts(self._course.run)

    def branch(self, wanted: str) -> Branch | None:
        """The branch with this id."""
        if piece := self._course.pieces.get(wanted):
            return self._branch(piece)
        above = self._course.pieces.get(wanted.rpartition(RANGE)[0])
        found = (part for part in self._parts(above) if part.id == wanted) if above is not None else ()
        return next((part for part in found if isinstance(part, Branch)), None)

    def path_to(self, wanted: str) -> list[str]:
        """The ids of the branches in which an entry or a branch is, from the top."""
        above = {part.key: piece for piece in self._course.pieces.values() for part in piece.parts}
        key = next((part.piece for part in self._entries.parts if part.id == wanted), None)
        if key is None and RANGE in wanted:
            key = wanted.rpartition(RANGE)[0]
        piece = above.get(wanted) if key is None else self._course.pieces.get(key)
        path = []
        while piece is not None:
            ids = [each.id if isinstance(each, TimedPart) else each.key for each in self._ordered(piece)]
            if len(ids) > MOST_PARTS and wanted in ids:
                path.append(f"{piece.key}{RANGE}{ids.index(wanted) // MOST_PARTS}")
            if piece.key:
                path.append(piece.key)
            wanted, piece = piece.key, above.get(piece.key)
        return path[::-1]

    def _ordered(self, piece: WorkPiece) -> list[WorkPiece | TimedPart]:
        found: list[tuple[str, WorkPiece | TimedPart]] = [(part.began or "~", part) for part in piece.parts]
        found += [(part.at, part) for part in self._below.get(piece.key, ())]
        return [part for _, part in sorted(found, key=lambda each: each[0])]

    def _parts(self, piece: WorkPiece) -> list[Branch | Leaf]:
        latest_first = reversed(self._ordered(piece))  # of those that are open at first
        found = [self._branch(each) if isinstance(each, WorkPiece) else self.leaf(each) for each in latest_first]
        found.reverse()
        if len(found) <= MOST_PARTS:
            return found
        ranges = (found[start : start + MOST_PARTS] for start in range(0, len(found), MOST_PARTS))
        return [self._range(f"{piece.key}{RANGE}{number}", parts) for number, parts in enumerate(ranges)]

    def _range(self, id: str, parts: list[Branch | Leaf]) -> Branch:
        tone = min((part.tone for part in parts), key=[*TONES].index)
        is_open = id in self._opened or any(isinstance(part, Branch) and part.is_open for part in parts)
        return Branch(id, f"{parts[0].label} to {parts[-1].label}", tone, "", is_open, len(parts), lambda: parts)

    def _branch(self, piece: WorkPiece) -> Branch:
        tone, count = self._tone(piece), len(piece.parts) + len(self._below.get(piece.key, ()))
        took = seconds_between(piece.began, piece.ended or self._course.at) if piece.began else None
        label = piece.label if piece.is_task or piece.visit < 2 else f"{piece.label} x{piece.visit}"
        about = one_line(piece.bad or piece.reason) or ("" if took is None else duration(took))
        is_open = self._is_small or piece.key in self._opened
        if not is_open and tone not in (GOOD, IDLE):
            self._left -= count
            is_open = self._left >= 0
        return Branch(piece.key, one_line(label, 80), tone, about, is_open, count, partial(self._parts, piece))

    def leaf(self, part: TimedPart) -> Leaf:
        match part.what:
            case ReportedTurn() as turn:
                tone = turn_tone(turn, self._course, self._tone)
                return Leaf(part.id, f"{turn.role} {turn.number}", tone, one_line(turn.summary, 80))
            case Path():  # its result may be long
                piece = self._course.pieces.get(part.piece)
                return Leaf(part.id, "check", IDLE if piece is None else self._tone(piece))
        entry = self._entries.entry(part)
        return Leaf(part.id, entry.who, entry.status.tone, one_line(entry.about, 80))


def turn_tone(turn: ReportedTurn, course: Course, tone: ToneOf) -> str:
    """How a turn is doing: one without an end is at work, or asks, as long as its piece does."""
    if turn.ended:
        return tone_of(turn.status, BAD)
    of_piece = tone(course.pieces.get(turn.piece, course.run))
    return of_piece if of_piece in (BUSY, ASKS) else WARN
