"""The entries of the report in the order they began: turns, checks, and questions to a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from codex_multi_role.extensions.pages.report.parts import FILES, Part, Reader, question_parts, test_parts, turn_parts
from codex_multi_role.extensions.pages.report.rendering import price
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import BAD, BUSY, GOOD, IDLE, WARN, status_in_words, tone_of
from codex_multi_role.presentation.pieces import RUNNING, Note, ReportedTurn, TestRun, WorkPiece
from codex_multi_role.presentation.wording import compact, duration, judged, one_line, plural, seconds_between, verdict
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
    """A row of the report. ``parts``: what it shows when opened."""

    id: str
    at: str
    who: str
    status: Chip
    about: str
    parts: list[Part]
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
        return len(self.parts)

    def __iter__(self) -> Iterator[ReportEntry]:
        return map(self._entry, self.parts)

    def find(self, entry: str) -> ReportEntry | None:
        """The entry with this id."""
        return next((self._entry(part) for part in self.parts if part.id == entry), None)

    def matching(self, wanted: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the ids of entries in which a text occurs, with what is before, in and after its first match there."""
        pattern = re.compile(re.escape(wanted), re.IGNORECASE)
        for part in self.parts:
            found = next(filter(None, map(pattern.search, self._texts(part.what))), None)
            if found is not None:
                start, end = found.span()
                before = found.string[max(0, start - AROUND) : start]
                yield part.id, [f"{'… ' if start > AROUND else ''}{before}", found[0], found.string[end : end + AROUND]]

    def _texts(self, what: Happened) -> Iterator[str]:
        """Yield what an entry says, and the files that it shows, without secrets."""
        files: list[Path] = []
        match what:
            case ReportedTurn():
                yield f"{what.role} turn {what.number} {what.summary}"
                folder = TurnFolder.of(self._folder, what.role, what.number).path
                files = [*(folder / name for name in FILES), *map(self._result_of, what.tests)]
            case Question():
                comment = what.answer.comment if what.answer else ""
                yield self._folder.redact(f"{what.question}\n{what.show}\n{comment}")
            case TestRun():
                files = [self._result_of(what)]
            case Path():
                files = [what / "result.json"]
            case Note():
                yield what.words
        for path in files:
            if text := self._reader.text(path, exact=True):
                yield text.text

    def _result_of(self, tests: TestRun) -> Path:
        return self._folder.path / "tests" / f"{tests.number:03d}" / "result.json"

    def _entry(self, part: TimedPart) -> ReportEntry:
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
                return _added(note)

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
            parts=list(turn_parts(self._reader, turn, folder, result)),
        )

    def _question(self, question: Question) -> ReportEntry:
        answer = question.answer
        status = Chip("open", WARN)
        by = ""
        if answer is not None:
            status = Chip("approved", GOOD) if answer.approved else Chip("rejected", BAD)
            by = one_line(answer.by)
        about = one_line(self._folder.redact(question.question), 300)
        said = f" {one_line(self._folder.redact(answer.comment), 200)}" if answer and answer.comment else ""
        return ReportEntry(
            id=question_id(question.key),
            at=question.asked_at,
            who=f"question {question.key}",
            status=status,
            chips=[Chip(f"by {by}")] if by else [],
            about=f"{about}{said}",
            parts=list(question_parts(self._reader, question)),
        )

    def _tests(self, tests: TestRun) -> ReportEntry:
        number = f"{tests.number:03d}"
        parts = test_parts(self._reader, self._folder.path / "tests" / number, "Result")
        return ReportEntry(
            id=tests_id(tests.number),
            at=tests.began,
            who=f"tests {number}",
            status=Chip(judged(tests.told), tone_of(judged(tests.told))),
            about=verdict(tests.told),
            parts=list(parts),
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
            parts=list(test_parts(self._reader, folder, "Result")),
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


def _added(note: Note) -> ReportEntry:
    status = Chip("noted")
    return ReportEntry(note_id(note), note.began, note.who, status, note.words, [])


@dataclass(frozen=True)
class TimedPart:
    """``id``: of its entry. ``what``: a check is identified by its folder. Tests after a turn belong to that turn.

    ``piece``: the key of the piece of work that it belongs to; that of the run itself is empty.
    """

    id: str
    at: str
    what: Happened
    piece: str = ""


def in_order(folder: RunFolder, course: Course, questions: Sequence[Question]) -> list[TimedPart]:
    """Return everything that began, earliest first."""
    turns = [*_all_turns(folder, course)]
    found = [TimedPart(turn_id(turn.role, turn.number), turn.began, turn, turn.piece) for turn in turns]
    of_pieces = {tests.number: piece.key for piece in course.pieces.values() for tests in piece.tests}
    alone = (tests for tests in course.tests.values() if not tests.turn)
    found += [TimedPart(tests_id(each.number), each.began, each, of_pieces.get(each.number, "")) for each in alone]
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
