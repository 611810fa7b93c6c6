"""What happened in a run: turns, checks and questions in the order they began, and the tree that leads through them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
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


OPEN_BELOW = 60
"""Number of entries up to which all branches are open at first; otherwise, as many that have not ended well."""
MOST_PARTS = 100
"""Parts of a branch above which they are divided into ranges of that many."""
RANGE = "~"
WORST_FIRST = (BAD, WARN, BUSY, GOOD, IDLE)

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
        tone = min((part.tone for part in parts), key=WORST_FIRST.index)
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
    """How a turn is doing: one without an end is at work as long as its piece is."""
    if turn.ended:
        return tone_of(turn.status, BAD)
    return BUSY if tone(course.pieces.get(turn.piece, course.run)) == BUSY else WARN
