"""What a run did, as the tree that leads through its page: step, task, turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from codex_multi_role.extensions.pages.report.entries import Entries, TimedPart
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import BAD, BUSY, GOOD, IDLE, WARN, tone_of
from codex_multi_role.presentation.pieces import Note, ReportedTurn, TestRun, WorkPiece
from codex_multi_role.presentation.wording import duration, judged, one_line, seconds_between, verdict
from codex_multi_role.run_folder import Question

OPEN_BELOW = 60
"""Number of entries up to which all branches are open at first; otherwise, those that have ended well are closed."""

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
    """A visit of a step, or a task of it. ``id``: its key; ``parts``: what it consists of, in order."""

    id: str
    label: str
    tone: str
    about: str
    is_open: bool
    parts: list[Branch | Leaf] = field(default_factory=list)


def run_tree(course: Course, entries: Entries, tone: ToneOf) -> list[Branch | Leaf]:
    """Everything that began, below the piece of work that it belongs to."""
    below: dict[str, list[TimedPart]] = {}
    for part in entries.parts:
        below.setdefault(part.piece, []).append(part)
    return _Growing(course, below, tone, is_small=len(entries) <= OPEN_BELOW).parts(course.run)


class _Growing:
    def __init__(
        self, course: Course, below: Mapping[str, Sequence[TimedPart]], tone: ToneOf, *, is_small: bool
    ) -> None:
        self._course, self._below, self._tone, self._is_small = course, below, tone, is_small

    def parts(self, piece: WorkPiece) -> list[Branch | Leaf]:
        found: list[tuple[str, Branch | Leaf]] = [(part.began or "~", self._branch(part)) for part in piece.parts]
        found += [(each.at, leaf) for each in self._below.get(piece.key, ()) for leaf in self._leaves(each)]
        return [part for _, part in sorted(found, key=lambda each: each[0])]

    def _branch(self, piece: WorkPiece) -> Branch:
        tone = self._tone(piece)
        took = seconds_between(piece.began, piece.ended or self._course.at) if piece.began else None
        label = piece.label if piece.is_task or piece.visit < 2 else f"{piece.label} x{piece.visit}"
        about = one_line(piece.bad or piece.reason) or ("" if took is None else duration(took))
        is_open = self._is_small or tone not in (GOOD, IDLE)
        return Branch(piece.key, one_line(label, 80), tone, about, is_open, self.parts(piece))

    def _leaves(self, part: TimedPart) -> Iterator[Leaf]:
        match part.what:
            case ReportedTurn() as turn:
                tone = tone_of(turn.status, BAD) if turn.ended else BUSY if self._is_at_work(turn) else WARN
                yield Leaf(part.id, f"{turn.role} {turn.number}", tone, one_line(turn.summary, 80))
                yield from (self._tests(part.id, tests) for tests in turn.tests)
            case TestRun() as tests:
                yield self._tests(part.id, tests)
            case Question() as question:
                answer = question.answer
                tone = WARN if answer is None else GOOD if answer.approved else BAD
                yield Leaf(part.id, "question", tone, one_line(question.question, 80))
            case Note() as note:
                yield Leaf(part.id, note.who, IDLE, one_line(note.words, 80))
            case _:
                piece = self._course.pieces.get(part.piece)
                yield Leaf(part.id, "check", IDLE if piece is None else self._tone(piece))

    def _is_at_work(self, turn: ReportedTurn) -> bool:
        piece = self._course.pieces.get(turn.piece, self._course.run)
        return self._tone(piece) == BUSY

    @staticmethod
    def _tests(entry: str, tests: TestRun) -> Leaf:
        return Leaf(entry, f"tests {tests.number:03d}", tone_of(judged(tests.told)), verdict(tests.told))
