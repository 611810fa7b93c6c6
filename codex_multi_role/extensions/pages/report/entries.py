"""The entries of the report in the order they began: turns, checks, and questions to a person."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.pages.report.parts import FILES, Part, Reader, question_parts, test_parts, turn_parts
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ASKS, BAD, GOOD, IDLE, WARN, status_in_words, tone_of
from codex_multi_role.presentation.pieces import RUNNING, Note, ReportedTurn, TestRun, WorkPiece
from codex_multi_role.presentation.wording import compact, duration, judged, one_line, plural, price, verdict
from codex_multi_role.run_folder import Question, Questions, RunFolder, TurnFolder, list_turns
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.turn_folder import REUSED

KILLED = "killed"
AROUND = 70
"""Characters shown on each side of what a search found."""
Happened = ReportedTurn | Question | TestRun | Note | Path
LONGEST_RESULT = 8_000_000
"""Maximum bytes of a check's result that is read for its status, even if the page shows little of it."""


@dataclass(frozen=True)
class Chip:
    words: str
    tone: str = IDLE


@dataclass(frozen=True)
class ReportEntry:
    """A row of the report. ``parts``: what it shows when opened, read only then."""

    id: str
    at: str
    who: str
    status: Chip
    about: str
    parts: Iterable[Part]
    what: str = ""
    chips: list[Chip] = field(default_factory=list)
    cost: str = ""


def turn_id(role: str, number: int) -> str:
    return f"turn-{role}-{number}"


def tests_id(number: int) -> str:
    return f"tests-{number:03d}"


def question_id(key: str) -> str:
    return f"question-{key}"


def note_id(note: Note) -> str:
    return f"event-{note.who}-{note.began}"


def text_sizes(folder: RunFolder) -> Iterator[int]:
    """Yield the sizes of all files that entries show."""
    turns = (turn.path / name for _, turn in list_turns(folder) for name in FILES)
    results = ((folder.path / name).rglob("result.json") for name in ("tests", "checks"))
    for path in chain(turns, *results):
        try:
            yield path.stat().st_size
        except OSError:
            continue


class Entries:
    """Reads each turn only when its entry is reached, so that no more than one turn's texts are held.

    ``alive``: whether a process works on the run; without one, a turn without an end was killed.
    """

    def __init__(self, folder: RunFolder, course: Course, cut_at: int, *, alive: bool) -> None:
        self._folder = folder
        self._alive = alive
        self._reader = Reader(folder.path, folder.redact, cut_at)
        self.questions = Questions(folder.path).asked()
        self.parts = in_order(folder, course, self.questions)

    def __len__(self) -> int:
        return sum(not part.is_within for part in self.parts)

    def __iter__(self) -> Iterator[ReportEntry]:
        return (self.entry(part) for part in self.parts if not part.is_within)

    def find(self, entry: str) -> ReportEntry | None:
        """The entry with this id."""
        return next((self.entry(part) for part in self.parts if part.id == entry), None)

    def excerpt(self, part: TimedPart, pattern: re.Pattern[str]) -> list[str]:
        """What is before, in and after the first match in what the part says; empty without a match."""
        if not any(map(pattern.search, self._texts(part.what, exact=False))):  # most have none: nothing is masked
            return []
        found = next(filter(None, map(pattern.search, self._texts(part.what, exact=True))), None)
        if found is None:
            return []
        start, end = found.span()
        before = found.string[max(0, start - AROUND) : start]
        return [f"{'… ' if start > AROUND else ''}{before}", found[0], found.string[end : end + AROUND]]

    def _texts(self, what: Happened, *, exact: bool) -> Iterator[str]:
        """Yield what an entry says, and the files that it shows. ``exact``: they have secrets, which are masked."""
        files: list[Path] = []
        match what:
            case ReportedTurn():
                yield f"{what.role} turn {what.number} {what.summary}"
                folder = TurnFolder.of(self._folder, what.role, what.number).path
                files = [folder / name for name in FILES]
            case Question():
                comment = what.answer.comment if what.answer else ""
                asked = f"{what.question}\n{what.show}\n{comment}"
                yield self._folder.redact(asked) if exact else asked
            case TestRun():
                files = [self._folder.path / "tests" / f"{what.number:03d}" / "result.json"]
            case Path():
                files = [what / "result.json"]
            case Note():
                yield what.words
        for path in files:
            if text := self._reader.text(path, exact=exact):
                yield text.text

    def entry(self, part: TimedPart) -> ReportEntry:
        match part.what:
            case ReportedTurn() as turn:
                return self._turn(turn)
            case Question() as question:
                return self._question(question)
            case TestRun() as tests:
                return self._tests(tests)
            case Path() as folder:
                return self._check(folder, part)
            case Note() as note:
                return ReportEntry(part.id, note.began, note.who, Chip("noted"), note.words, [])

    def _turn(self, turn: ReportedTurn) -> ReportEntry:
        folder = TurnFolder.of(self._folder, turn.role, turn.number)
        result = self._folder.redact.within(_object(folder.result()))
        status = str(result.get("status") or turn.status)
        if status == RUNNING and not self._alive:
            status = KILLED
        return ReportEntry(
            id=turn_id(turn.role, turn.number),
            at=turn.began,
            who=turn.role,
            what=f"turn {turn.number}",
            status=Chip(status_in_words(status), tone_of(status, BAD)),
            chips=_chips(turn, result),
            about=one_line(result.get("reason") or turn.summary, 300),
            cost=_cost(result),
            parts=turn_parts(self._reader, turn, folder, result),
        )

    def _question(self, question: Question) -> ReportEntry:
        answer = question.answer
        status = Chip("open", ASKS)
        by = ""
        if answer is not None:
            status = Chip("approved", GOOD) if answer.approved else Chip("rejected", BAD)
            by = one_line(answer.by)
        about = one_line(self._folder.redact(question.question), 300)
        said = f" {one_line(self._folder.redact(answer.comment), 200)}" if answer and answer.comment else ""
        return ReportEntry(
            id=question_id(question.key),
            at=question.asked_at,
            who="question",
            what=question.key,
            status=status,
            chips=[Chip(f"by {by}")] if by else [],
            about=f"{about}{said}",
            parts=question_parts(self._reader, question),
        )

    def _tests(self, tests: TestRun) -> ReportEntry:
        number = f"{tests.number:03d}"
        return ReportEntry(
            id=tests_id(tests.number),
            at=tests.began,
            who=f"tests {number}",
            status=Chip(judged(tests.told), tone_of(judged(tests.told))),
            about=verdict(tests.told),
            parts=test_parts(self._reader, self._folder.path / "tests" / number, "Result"),
        )

    def _check(self, folder: Path, part: TimedPart) -> ReportEntry:
        result = _object(self._reader.value(folder / "result.json", LONGEST_RESULT))
        status = one_line(result.get("status", "ended"), 40)
        covered = result.get("coverage")
        return ReportEntry(
            id=part.id,
            at=part.at,
            who=part.id.replace("-", " ", 1),
            status=Chip(status, tone_of(status)),
            chips=[Chip(f"coverage {covered:g} %")] if isinstance(covered, int | float) else [],
            about=one_line(result.get("reason", ""), 300),
            parts=test_parts(self._reader, folder, "Result"),
        )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _chips(turn: ReportedTurn, result: dict[str, Any]) -> list[Chip]:
    found = [Chip(one_line(unit, 80))] if (unit := result.get("unit")) else []
    if turn.inherited or result.get("inherited"):
        found.append(Chip("inherited"))
    if result.get(REUSED):
        found.append(Chip("taken over"))
    if repaired := result.get("repair_of") or turn.repair_of:
        found.append(Chip(f"repairs turn {repaired}", WARN))
    if continued := result.get("continues") or turn.continues:
        found.append(Chip(f"continues turn {continued}"))
    if result.get("repaired_locally"):
        found.append(Chip("answer repaired", WARN))
    if attempt := result.get("attempt", 1):
        found += [Chip(f"attempt {attempt}", WARN)] if attempt != 1 else []
    if turn.written:
        found.append(Chip(plural(turn.written, "file")))
    if approvals := result.get("approvals"):
        found.append(Chip(plural(len(approvals), "approval"), WARN))
    found += [Chip(f"tests {verdict(tests.told)}", tone_of(judged(tests.told))) for tests in turn.tests]
    return found


def _cost(result: dict[str, Any]) -> str:
    tokens = _object(result.get("tokens"))
    both = sum(number for kind in ("input", "output") if isinstance(number := tokens.get(kind), int | float))
    seconds = result.get("seconds")
    words = [duration(seconds)] if isinstance(seconds, int | float) else []
    words += [f"{compact(both)} tokens", price(Cost.of_turn(result))] if both else []
    return ", ".join(filter(None, words))


@dataclass(frozen=True)
class TimedPart:
    """``id``: of its entry. ``what``: a check is identified by its folder.

    ``piece``: the key of the piece of work that it belongs to; that of the run itself is empty. ``is_within``: whether
    the entry of a turn shows it, as that turn's tests.
    """

    id: str
    at: str
    what: Happened
    piece: str = ""
    is_within: bool = False


def in_order(folder: RunFolder, course: Course, questions: Sequence[Question]) -> list[TimedPart]:
    """Return everything that began, earliest first."""
    turns = [*_all_turns(folder, course)]
    found = [TimedPart(turn_id(turn.role, turn.number), turn.began, turn, turn.piece) for turn in turns]
    of_turns = {tests.number: turn.piece for turn in turns for tests in turn.tests}
    of_pieces = {tests.number: piece.key for piece in course.pieces.values() for tests in piece.tests}
    for number, tests in course.tests.items():
        piece = of_turns.get(number, of_pieces.get(number, ""))
        found.append(TimedPart(tests_id(number), tests.began, tests, piece, is_within=number in of_turns))
    asked = {f"{turn.role}.turn_{turn.number:03d}": turn.piece for turn in turns} | {key: key for key in course.pieces}
    found += [TimedPart(question_id(each.key), each.asked_at, each, asked.get(each.key, "")) for each in questions]
    found += _checks(folder, course.pieces)
    found += [TimedPart(note_id(each), each.began, each) for each in course.notes if each.who]
    return sorted(found, key=lambda each: each.at)


def _all_turns(folder: RunFolder, course: Course) -> Iterator[ReportedTurn]:
    """Yield the turns that have events, then those in the folder that have none."""
    yield from course.turns.values()
    for role, turn in list_turns(folder):
        if (role, turn.number) not in course.turns:
            yield ReportedTurn(role, turn.number, course.at, course.at, "unknown")


def _checks(folder: RunFolder, pieces: Mapping[str, WorkPiece]) -> Iterator[TimedPart]:
    top = folder.path / "checks"
    for path in top.rglob("result.json"):
        key = path.parent.relative_to(top).as_posix()
        if piece := pieces.get(key) or pieces.get(key.rpartition(".")[0]):
            yield TimedPart(f"check-{key}", piece.began, path.parent, piece.key)
