"""The steps, tasks and turns of a run as the rows of a tree: what people read in a terminal and in ``show``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ASKS, BAD, GLYPHS, IDLE, status_in_words, tokens_in_words, tone_of
from codex_multi_role.presentation.pieces import RUNNING, Note, ReportedTurn, TestRun, WorkPiece
from codex_multi_role.presentation.wording import (
    clock,
    columns_of,
    cut,
    duration,
    failed_tests,
    judged,
    one_line,
    plural,
    price,
    seconds_between,
    verdict,
    wrapped,
)
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.states import COMPLETED, FAILED, IN_PROGRESS

MIDDLE, WIDE, UNLIMITED = 64, 92, 1_000_000
"""Columns from which on costs of pieces and of turns are shown, and those of a view that is not a terminal."""
FAILED_TESTS, REASON_LINES = 3, 3
MOST_TASKS = 200
INDENT = 2
WAITS = "waits for you"


@dataclass(frozen=True)
class Row:
    """A line of the tree. ``tone``: of its glyph; none for a line that only adds to the one above.

    ``figures``: after its words, never cut.
    """

    depth: int
    words: str
    tone: str = ""
    state: str = ""
    at: str = ""
    figures: str = ""

    @property
    def indent(self) -> str:
        return " " * INDENT * self.depth

    def line(self, width: int = UNLIMITED, glyphs: dict[str, str] = GLYPHS) -> str:
        """With its time."""
        start = f"{clock(self.at) if self.at else ' ' * 8}  {self.indent}{glyphs.get(self.tone, ' ')} "
        return start + self.fitted(width - len(start))

    def fitted(self, width: int) -> str:
        """Its words and figures in ``width`` columns."""
        return cut(self.words, max(1, width - columns_of(self.figures))) + self.figures


def fit(rows: list[Row], most: int) -> list[Row]:
    """At most ``most`` of the rows: those that have ended are left out first, then those that start last.

    What is below a row is left out before it; what a person is asked is left out last.
    """
    if len(rows) <= most:
        return rows
    ranks, above, order = list[tuple[int, bool, int, int, int]](), dict[int, int](), [*GLYPHS, ""]
    for index, row in enumerate(rows):
        rank = order.index(row.tone)
        above[row.depth] = min(rank, above.get(row.depth - 1, rank))
        ranks.append((above[row.depth], row.depth == 0, -row.depth, -index if rank else index, index))
    out = {index for *_, index in sorted(ranks)[: len(rows) - most + 1]}
    states = Counter(status_in_words(rows[index].state).lower() for index in sorted(out) if rows[index].state)
    told = ", ".join(f"{count} {state}" for state, count in states.items())
    left = Row(0, f"and {plural(len(out), 'line')} more{told and f': {told}'}", IDLE)
    return [*(row for index, row in enumerate(rows) if index not in out), left]


class Tree:
    """The rows at ``now`` (an event's ``at``) for a view of ``width`` columns.

    In the order of the flow, of each step the latest visit, with what is open or went wrong in it; of a ``whole`` one,
    everything in the order in which it began.
    """

    def __init__(self, course: Course, now: str, width: int = UNLIMITED, *, whole: bool = False) -> None:
        self._course, self._now, self._width, self._whole = course, now, width, whole
        ended = (tests.told.get("seconds") for tests in reversed(course.tests.values()) if tests.ended)
        self._last_seconds = next(filter(None, ended), course.baseline.seconds if course.baseline else 0.0)

    def rows(self) -> Iterator[Row]:
        if self._whole:
            yield from self._all_below(self._course.run, -1)
            return
        visits = {piece.name: piece for piece in self._course.run.parts}
        is_ahead = not visits and self._course.ended is None
        for name in dict.fromkeys((*self._course.steps, *visits)):
            is_ahead = is_ahead or (name == self._course.current_step and self._course.ended is None)
            if name in visits:
                yield from self._piece(visits[name], 0)
            elif is_ahead:
                yield Row(0, one_line(name, 60), IDLE, "pending")
        if not visits:
            yield from self._latest_turns(self._course.run, 0)

    def _all_below(self, piece: WorkPiece, depth: int) -> Iterator[Row]:
        notes = [note for note in self._course.notes if note.who] if depth < 0 else []
        below: list[WorkPiece | ReportedTurn | TestRun | Note] = [*piece.parts, *piece.turns, *piece.tests, *notes]
        for each in sorted(below, key=lambda each: each.began or "~"):
            match each:
                case Note():
                    yield Row(depth + 1, f"{each.who}: {each.words}", IDLE, "", each.began)
                case WorkPiece():
                    yield from self._head(each, depth + 1, open_below=True)
                    yield from self._all_below(each, depth + 1)
                case ReportedTurn():
                    yield self._turn(each, depth + 1)
                    yield from (self._tests(tests, depth + 2) for tests in each.tests)
                case TestRun():
                    yield self._tests(each, depth + 1)

    def _piece(self, piece: WorkPiece, depth: int) -> Iterator[Row]:
        parts = list({part.key if part.is_task else part.name: part for part in piece.parts}.values())
        if len(parts) > MOST_TASKS:  # nobody reads them all, and drawing them takes long
            parts = [part for part in parts if part.state in (IN_PROGRESS, FAILED) or part.flaw][:MOST_TASKS]
        run, asked = self._course.started, {turn.role for turn in piece.turns}
        is_round = run.cycles and len(run.steps) == 1 and not parts and self._course.ended is None
        ahead = [role for role in run.roles if role not in asked] if is_round else []
        several = len(asked) + len(ahead) > 1
        yield from self._head(piece, depth, open_below=bool(parts) or several)
        is_open = piece.state == IN_PROGRESS or len(self._course.steps) == 1  # otherwise nothing would be left to read
        if is_open or any(part.state == FAILED or part.flaw for part in parts):
            for part in parts:
                yield from self._piece(part, depth + 1)
            if several:
                yield from self._latest_turns(piece, depth + 1)
                yield from (Row(depth + 1, one_line(role, 60), IDLE, "pending") for role in ahead)
        if piece.is_task or not parts:
            yield from self._failures(piece, depth + 1)

    def _head(self, piece: WorkPiece, depth: int, *, open_below: bool) -> Iterator[Row]:
        tasks = piece.tasks
        visit = 1 if piece.is_task else piece.visit
        over = f" {sum(bool(task.ended) for task in tasks)}/{len(tasks)}" if tasks else ""
        label = f"{one_line(piece.label, 80)}{over}{f' x{visit}' if visit > 1 else ''}"
        told, figures, tone = self._doing(piece, open_below), self._figures(piece), self._course.tone_of(piece)
        below, room = list[str](), self._width - INDENT * (depth + 1)
        if (piece.bad or piece.reason) and columns_of(f"{label}: {told}, {figures}") > room:
            told, below = "", wrapped(told, room - INDENT)
        words = ": ".join(filter(None, (label, told)))
        figures = f"{', ' if told else ': '}{figures}" if figures else ""
        yield Row(depth, words, tone, WAITS if tone == ASKS else piece.state, piece.began, figures)
        yield from (Row(depth + 1, line) for line in below[:REASON_LINES])

    def _doing(self, piece: WorkPiece, open_below: bool) -> str:
        """What it does now, or what there is to say of its end."""
        if piece.state != IN_PROGRESS:
            ended = "completed, " if piece.state == COMPLETED and piece.reason else ""
            said = piece.said or next((turn.summary for turn in piece.turns[-1:] if not open_below), "")
            return one_line(piece.bad or f"{ended}{piece.reason}" or said, 200)
        if self._course.asks_in(piece):
            return WAITS
        if self._course.ended is not None:
            return "stopped"
        tests = piece.last_tests()
        if tests is not None and not tests.ended and not piece.parts:
            last = f" ({duration(self._last_seconds)} last time)" if self._last_seconds else ""
            return f"tests running, {duration(seconds_between(tests.began, self._now))}{last}"
        if open_below:
            return ""
        working = [turn.role for turn in piece.turns if not turn.ended]
        doing = self._course.role(working[-1]).last if working else ""
        return one_line(doing if not working or working[-1] == piece.name else f"{working[-1]}: {doing}", 200)

    def _figures(self, piece: WorkPiece) -> str:
        cost = sum((Cost.of(turn.cost) for turn in piece.all_turns() if turn.is_counted), Cost())
        took = duration(seconds_between(piece.began, piece.ended or self._now)) if piece.began else ""
        shown = price(cost) if cost.amount and self._width >= MIDDLE else ""
        return ", ".join(filter(None, (took, shown)))

    def _latest_turns(self, piece: WorkPiece, depth: int) -> Iterator[Row]:
        return (self._turn(turn, depth) for turn in {turn.role: turn for turn in piece.turns}.values())

    def _turn(self, turn: ReportedTurn, depth: int) -> Row:
        which = [f"turn {turn.number}"] if self._whole else []
        which += ["inherited"] if turn.inherited else []
        which += [f"repairs turn {turn.repair_of}"] if turn.repair_of else []
        which += [f"continues turn {turn.continues}"] if turn.continues else []
        which += [] if turn.status in ("completed", RUNNING) else [status_in_words(turn.status)]
        which.append(duration(turn.seconds if turn.ended else seconds_between(turn.began, self._now)))
        which += [tokens_in_words(turn.input_tokens, turn.output_tokens)] if self._whole else []
        which += [price(Cost.of(turn.cost))] if turn.cost and self._width >= WIDE else []
        said = turn.summary if turn.ended else self._course.role(turn.role).last
        words = ", ".join(filter(None, (*which, one_line(said), one_line(turn.ignored))))
        return Row(depth, f"{one_line(turn.role, 60)}: {words}", tone_of(turn.status, BAD), turn.status, turn.began)

    @staticmethod
    def _tests(tests: TestRun, depth: int) -> Row:
        words = ": ".join(filter(None, (verdict(tests.told), failed_tests(tests.told))))
        return Row(depth, f"tests {tests.number:03d}: {words}", tone_of(judged(tests.told)), "", tests.began)

    def _failures(self, piece: WorkPiece, depth: int) -> Iterator[Row]:
        """The failed tests of its last run, each with what it says; of a long one, the file stands alone."""
        tests = piece.last_tests()
        if tests is None or tone_of(judged(tests.told)) != BAD:
            return
        for name in tests.told.get("failures", ())[:FAILED_TESTS]:
            file, mark, test = name.partition("::")
            is_long = columns_of(name) > self._width - INDENT * (depth + 1)
            yield Row(depth, one_line(f"{file}{mark}" if is_long else name), BAD)
            yield from [Row(depth + 1, one_line(test))] if is_long and test else []
            if message := tests.told.get("messages", {}).get(name):
                yield Row(depth + 1, one_line(message))
