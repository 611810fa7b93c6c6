"""Who worked when: lanes of the flow's steps, of each role's process, each task, each test run, and of a person."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from codex_multi_role.extensions.pages.report.entries import question_id, tests_id, turn_id
from codex_multi_role.extensions.pages.report.run_tree import TONES, ToneOf, turn_tone
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import ASKS, IDLE, WARN, status_in_words, tone_of
from codex_multi_role.presentation.pieces import ReportedTurn, TestRun, WorkPiece
from codex_multi_role.presentation.wording import duration, judged, one_line, verdict
from codex_multi_role.run_folder import Question

LONGEST_PAUSE, LONGEST_PAUSE_SECONDS = 0.08, 60.0
"""The scale cuts a pause without turns and tests that exceeds both; the first is a share of the time with them."""
CUT_PAUSE = 0.02
PIXELS_A_TICK = 140
NARROWEST = 0.12
LABELLED_PIXELS = 20
"""Width of a bar from which on it has a label."""
MOST_LANES = 12
"""Of tasks, and of test runs: more of them share a lane."""
MOST_BARS = 400
"""Of a lane: more of them share bars."""
PIXELS_A_TURN, FEWEST_PIXELS, MOST_PIXELS = 7, 700, 12_000

ROW, AXIS = 26, 24
PAUSE = ("pause", "pause, shortened")

Span = tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """``x`` and ``width`` in percent of the scale; ``target``: the entry it represents, or empty."""

    x: float
    width: float
    tone: str
    title: str
    target: str = ""
    label: str = ""


@dataclass(frozen=True)
class Lane:
    """``kind``: flow, role, task, tests or person; two lanes may have the same name."""

    name: str
    kind: str
    bars: list[Bar]


@dataclass(frozen=True)
class Mark:
    x: float
    words: str


@dataclass(frozen=True)
class Timeline:
    """``pixels``: minimum width. ``cuts``: pauses that were cut, each with its duration."""

    lanes: list[Lane]
    ticks: list[Mark]
    cuts: list[Mark]
    pixels: int
    row: int = ROW

    @property
    def height(self) -> int:
        return self.row * len(self.lanes) + AXIS

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Tones and what they mean."""
        return [*TONES.items(), *([PAUSE] if self.cuts else [])]


class Scale:
    """Converts moments to percent. Long pauses between ``spans`` (seconds) are cut.

    If the clock was set back, a span may end before it begins: its length is then zero.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        busy = list(_merged((start, max(start, end)) for start, end in spans)) or [(0.0, 1.0)]
        worked = sum(end - start for start, end in busy) or 1.0
        self._moments, self._drawn = [busy[0][0]], [0.0]
        self._cuts: list[tuple[float, float]] = []
        for number, (start, end) in enumerate(busy):
            if number:
                self._pause(start, worked)
            self._add(end, end - start)
        self._length = self._drawn[-1] or 1.0

    def _pause(self, until: float, worked: float) -> None:
        pause = until - self._moments[-1]
        drawn = pause
        if pause > max(LONGEST_PAUSE_SECONDS, LONGEST_PAUSE * worked):
            drawn = CUT_PAUSE * worked
            self._cuts.append((self._drawn[-1] + drawn / 2, pause))
        self._add(until, drawn)

    def _add(self, moment: float, drawn: float) -> None:
        self._moments.append(moment)
        self._drawn.append(self._drawn[-1] + drawn)

    @property
    def cuts(self) -> list[Mark]:
        """The pauses that were cut, with their durations."""
        return [Mark(100 * place / self._length, duration(pause)) for place, pause in self._cuts]

    def ticks(self, number: int) -> list[Mark]:
        """Return the time since the beginning at ``number`` evenly spaced places."""
        moments = [_between(self._length * n / number, self._drawn, self._moments) for n in range(number)]
        return [Mark(100 * n / number, f"+{duration(at - self._moments[0])}") for n, at in enumerate(moments)]

    def place(self, moment: float) -> float:
        """Return a moment in percent."""
        return 100 * _between(moment, self._moments, self._drawn) / self._length


def _between(value: float, known: Sequence[float], wanted: Sequence[float]) -> float:
    """Interpolate the value of ``wanted`` where ``known``, in the same order, has ``value``."""
    after = bisect_left(known, value)
    if after in (0, len(known)):
        return wanted[min(after, len(wanted) - 1)]
    start, end = known[after - 1], known[after]
    return wanted[after - 1] + (wanted[after] - wanted[after - 1]) * (value - start) / (end - start)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Merge spans that overlap."""
    current: Span | None = None
    for start, end in sorted(spans):
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
        else:
            if current is not None:
                yield current
            current = (start, end)
    if current is not None:
        yield current


def timeline(course: Course, questions: Sequence[Question], tone: ToneOf) -> Timeline | None:
    """Build the timeline; None for a run in which nothing began. ``tone``: how a task is doing."""
    if not (course.turns or course.tests or questions):
        return None
    pixels = min(MOST_PIXELS, max(FEWEST_PIXELS, PIXELS_A_TURN * len(course.turns)))
    drawing = _TimelineDrawing(course, questions, tone, pixels)
    return Timeline(list(drawing.lanes()), drawing.scale.ticks(pixels // PIXELS_A_TICK), drawing.scale.cuts, pixels)


class _TimelineDrawing:
    def __init__(self, course: Course, questions: Sequence[Question], tone: ToneOf, pixels: int) -> None:
        self._course = course
        self._questions = questions
        self._tone = tone
        self._pixels = pixels
        self._visits = course.run.parts
        self._tasks = [task for visit in self._visits for task in visit.tasks if task.began]
        moments = [*(visit.began for visit in self._visits), *(question.asked_at for question in questions)]
        self._last = _seconds(course.at or max(moments))  # without events, the questions still have times
        worked: list[ReportedTurn | TestRun] = [*course.turns.values(), *course.tests.values()]
        spans = [(_seconds(each.began), self._end(each.ended)) for each in worked]
        self.scale = Scale([*spans, *((_seconds(at), _seconds(at)) for at in moments)])

    def _end(self, at: str) -> float:
        return _seconds(at) if at else self._last

    def lanes(self) -> Iterator[Lane]:
        """Yield the nonempty lanes; roles in the order of their first turn."""
        roles: dict[str, list[Bar]] = {}
        for turn in self._course.turns.values():
            roles.setdefault(turn.role, []).append(self._turn(turn))
        lanes = [Lane("flow", "flow", list(self._steps())), *(Lane(name, "role", bars) for name, bars in roles.items())]
        lanes += _lanes("tasks", "task", [(task.label, self._task(task)) for task in self._tasks])
        tests = self._course.tests.values()
        lanes += _lanes("tests", "tests", [(f"tests {each.number:03d}", self._tests(each)) for each in tests])
        lanes.append(Lane("questions", "person", [self._question(each) for each in self._questions]))
        yield from (replace(lane, bars=_shared(lane.bars)) for lane in lanes if lane.bars)

    def _steps(self) -> Iterator[Bar]:
        for number, visit in enumerate(self._visits):
            end = self._visits[number + 1].began if number + 1 < len(self._visits) else ""
            label = visit.step if visit.visit < 2 else f"{visit.step} x{visit.visit}"
            yield self._bar(visit.began, end, IDLE, f"step {visit.step}, visit {visit.visit}", "", label)

    def _task(self, task: WorkPiece) -> Bar:
        state = status_in_words(task.state).lower()
        title = f"task {task.label}: {state}{f', {task.flaw or task.reason}' if task.flaw or task.reason else ''}"
        first = next((turn_id(turn.role, turn.number) for turn in reversed(task.all_turns())), "")
        return self._bar(task.began, task.ended, self._tone(task), title, first, state)

    def _turn(self, turn: ReportedTurn) -> Bar:
        tone = turn_tone(turn, self._course, self._tone)
        status = status_in_words(turn.status) if turn.ended else "no end"
        seconds = duration(max(0.0, self._end(turn.ended) - _seconds(turn.began)))
        title = f"{turn.role}, turn {turn.number}: {status}, {seconds}"
        task = self._course.task_of(turn.piece)
        label = f"{turn.number} {task.name}" if task is not None else str(turn.number)
        return self._bar(turn.began, turn.ended, tone, title, turn_id(turn.role, turn.number), label)

    def _tests(self, tests: TestRun) -> Bar:
        tone = tone_of(judged(tests.told)) if tests.ended else WARN
        title = f"tests {tests.number:03d}: {judged(tests.told)}"
        return self._bar(tests.began, tests.ended, tone, title, tests_id(tests.number), verdict(tests.told))

    def _question(self, question: Question) -> Bar:
        answer = question.answer
        title = f"question {question.key}: {'answered' if answer else 'open'}"
        ended, tone = (answer.at, IDLE) if answer else ("", ASKS)
        return self._bar(question.asked_at, ended, tone, title, question_id(question.key), question.key)

    def _bar(self, began: str, ended: str, tone: str, title: str, target: str, label: str) -> Bar:
        x = self.scale.place(_seconds(began))
        width = max(NARROWEST, self.scale.place(self._end(ended)) - x)
        shown = one_line(label, 60) if width * self._pixels > 100 * LABELLED_PIXELS else ""
        return Bar(round(min(x, 100 - NARROWEST), 3), round(width, 3), tone, one_line(title), target, shown)


def _lanes(name: str, kind: str, bars: Sequence[tuple[str, Bar]]) -> list[Lane]:
    """A lane for each of them, or one for all if they are many."""
    if len(bars) > MOST_LANES:
        return [Lane(name, kind, [bar for _, bar in bars])]
    return [Lane(one_line(of, 60), kind, [bar]) for of, bar in bars]


def _shared(bars: list[Bar]) -> list[Bar]:
    """One bar for all of a lane that begin at nearly the same place, if they are too many to be told apart."""
    if len(bars) <= MOST_BARS:
        return bars
    places = groupby(bars, lambda bar: int(bar.x * MOST_BARS / 100))
    return [_together(list(each)) for _, each in places]


def _together(bars: list[Bar]) -> Bar:
    if len(bars) == 1:
        return bars[0]
    worst = min(bars, key=lambda bar: [*TONES].index(bar.tone))
    width = max(bar.x + bar.width for bar in bars) - bars[0].x
    return replace(worst, x=bars[0].x, width=round(width, 3), title=f"{len(bars)} in one bar: {worst.title}", label="")


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
