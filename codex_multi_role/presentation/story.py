"""What happened in a run, in order, from its events: small facts about every turn, but no texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path

from codex_multi_role.presentation.outcome import Incident, added_in_words, incident_in_words, kind_of
from codex_multi_role.presentation.progress import INTERRUPTED, LASTING_EVENTS, Progress
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import Question, RunEvent, RunFolder, events, list_turns, skim_events
from codex_multi_role.run_folder.states import ReportedStates

RUNNING = "running"
MOST_NOTES = 500
Noted = events.Warning | Incident


@dataclass
class TestRun:
    """``role`` and ``turn``: after which turn it ran; ``turn`` 0: a check of the flow ran it."""

    __test__ = False
    number: int
    role: str
    turn: int
    began: str
    ended: str = ""
    status: str = RUNNING
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    verdict: str = ""
    new_failures: int = 0
    still_failing: int = 0
    fixed: int = 0
    removed: int = 0
    moved: int = 0
    dropped: int = 0
    flaky: int = 0
    without_baseline: str = ""
    not_seen: str = ""
    other_counts: dict[str, int] = field(default_factory=dict)
    forbidden: dict[str, int] = field(default_factory=dict)


@dataclass
class ReportedTurn:
    """``ended`` is empty without a recorded end. ``summary``: what the turn says of itself, or why it failed.

    ``ignored``: why its DONE did not count.
    """

    role: str
    number: int
    began: str
    ended: str = ""
    status: str = RUNNING
    summary: str = ""
    repair_of: int | None = None
    continues: int | None = None
    inherited: bool = False
    written: int = 0
    ignored: str = ""
    tests: list[TestRun] = field(default_factory=list)


@dataclass(frozen=True)
class Visit:
    """A step's visit; ``step`` as in the event, after the unit that called its flow."""

    step: str
    visit: int
    at: str


@dataclass(frozen=True)
class Note:
    """Something to know that does not belong to a turn. ``who``: the type of the event of an extension."""

    at: str
    words: str
    who: str = ""


class Story:
    """Built event by event, the inherited ones first; ``at`` is the time of the latest.

    ``progress``: what every view of a run shows, the run's own work only. ``roles``: the members of the team.
    """

    def __init__(self) -> None:
        self.progress = Progress()
        self.turns: dict[tuple[str, int], ReportedTurn] = {}
        self.tests: dict[int, TestRun] = {}
        self.visits: dict[tuple[str, int], Visit] = {}
        self.notes: list[Note] = []
        self.notes_left_out = 0
        self.added: list[Note] = []
        self.states = ReportedStates()
        self.roles: list[str] = []
        self.began = ""
        self.at = ""

    @classmethod
    def of_run(cls, folder: RunFolder) -> Story:
        """Build the story of the run in ``folder``; its `progress` lacks what a role did last within a turn."""
        wanted = LASTING_EVENTS.union(_add.registry) - {object}
        return cls.of(skim_events(folder.inherited_events_path, wanted), skim_events(folder.events_path, wanted))

    @classmethod
    def of(cls, inherited: Iterable[RunEvent], own: Iterable[RunEvent]) -> Story:
        """Build the story. ``inherited``: the events of the runs before a fork."""
        story = cls()
        for event in inherited:
            story._apply(event)
        for turn in story.turns.values():
            turn.inherited = True
        for event in own:
            story._apply(event)
            story.progress.apply(event)
        return story

    @property
    def worked(self) -> list[ReportedTurn | TestRun]:
        """All turns and test runs."""
        return [*self.turns.values(), *self.tests.values()]

    def _apply(self, event: RunEvent) -> None:
        self.began = self.began or event.at
        handler = _add.registry.get(kind_of(event))  # as in `Progress.apply`
        if handler is not None:
            handler(event, self)
        self.at = event.at or self.at

    def turn_of(
        self, event: events.TurnEnded | events.FilesApplied | events.TestsStarted | events.DoneIgnored
    ) -> ReportedTurn | None:
        return self.turns.get((event.role, event.turn))


@singledispatch
def _add(event: RunEvent, story: Story) -> None:
    """What an event adds to the story; nothing, unless a function below is registered for its class."""


@_add.register
def _run_started(event: events.RunStarted, story: Story) -> None:
    """End what the previous session left open with that session's last event: nothing more is known about it."""
    story.roles = list(event.roles)
    for each in story.worked:
        if not each.ended:
            each.ended, each.status = story.at, INTERRUPTED


@_add.register
def _step_started(event: events.StepStarted, story: Story) -> None:
    # A resumed run reports its current visit again.
    story.visits.setdefault((event.step, event.visit), Visit(event.step, event.visit, event.at))


@_add.register
def _turn_started(event: events.TurnStarted, story: Story) -> None:
    turn = ReportedTurn(event.role, event.turn, event.at, repair_of=event.repair_of, continues=event.continues)
    story.turns.setdefault((event.role, event.turn), turn)


@_add.register
def _turn_ended(event: events.TurnEnded, story: Story) -> None:
    if turn := story.turn_of(event):
        turn.ended, turn.status, turn.summary = event.at, event.status, event.summary or event.reason


@_add.register
def _files_applied(event: events.FilesApplied, story: Story) -> None:
    if turn := story.turn_of(event):
        turn.written += event.written


@_add.register
def _tests_started(event: events.TestsStarted, story: Story) -> None:
    tests = story.tests[event.number] = TestRun(event.number, event.role, event.turn, event.at)
    if turn := story.turn_of(event):
        turn.tests.append(tests)


@_add.register
def _tests_ended(event: events.TestsEnded, story: Story) -> None:
    if tests := story.tests.get(event.number):
        tests.ended = event.at
        for name in vars(tests).keys() & vars(event).keys():
            setattr(tests, name, getattr(event, name))


@_add.register
def _state_changed(event: events.StateChanged, story: Story) -> None:
    story.states.apply(event)


@_add.register
def _note(event: Noted, story: Story) -> None:
    if isinstance(event, events.DoneIgnored) and event.reason and (turn := story.turn_of(event)):
        turn.ignored = incident_in_words(event)
    if len(story.notes) < MOST_NOTES:
        story.notes.append(Note(event.at, one_line(_words(event), 500)))
    else:
        story.notes_left_out += 1


@_add.register
def _added(event: events.AddedEvent, story: Story) -> None:
    if (words := added_in_words(event)) and len(story.added) < MOST_NOTES:
        story.added.append(Note(event.at, words, event.type.removeprefix(events.ADDED)))


def _words(event: Noted) -> str:
    match event:
        case events.Warning(message):
            return message
        case _:
            return f"{event.role or 'before tests'}: {incident_in_words(event)}"


@dataclass(frozen=True)
class TimedPart:
    """``what``: a check is identified by its folder. Tests after a turn belong to that turn."""

    at: str
    what: ReportedTurn | Question | TestRun | Note | Path


def in_order(folder: RunFolder, story: Story, questions: Sequence[Question]) -> list[TimedPart]:
    """Return everything that began, earliest first."""
    found = [TimedPart(turn.began, turn) for turn in _turns(folder, story)]
    found += [TimedPart(tests.began, tests) for tests in story.tests.values() if not tests.turn]
    found += [TimedPart(question.asked_at, question) for question in questions]
    found += _checks(folder, story.visits)
    found += [TimedPart(each.at, each) for each in story.added]
    return sorted(found, key=lambda each: each.at)


def _turns(folder: RunFolder, story: Story) -> Iterator[ReportedTurn]:
    """Yield the turns that have events, then those in the folder that have none."""
    yield from story.turns.values()
    last = story.at
    for role, turn in list_turns(folder):
        if (role, turn.number) not in story.turns:
            yield ReportedTurn(role, turn.number, last, last, "unknown")


def _checks(folder: RunFolder, visits: Mapping[tuple[str, int], Visit]) -> Iterator[TimedPart]:
    top = folder.path / "checks"
    for path in top.rglob("result.json"):
        visit = _visit(path.parent.relative_to(top).as_posix(), visits)
        if visit is not None:
            yield TimedPart(visit.at, path.parent)


def _visit(key: str, visits: Mapping[tuple[str, int], Visit]) -> Visit | None:
    """Find the visit of a unit's key, ``<step>.<visit>`` or ``<step>.<visit>.<index>``. Ids may contain dots."""
    unit = key
    for _ in range(2):
        unit, _, number = unit.rpartition(".")
        if number.isdecimal() and (unit, int(number)) in visits:
            return visits[unit, int(number)]
    return None
