"""What happened in a run, in order, from its events: small facts about every turn, but no texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from codex_multi_role.presentation.progress import Progress
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.run_folder import Record
from codex_multi_role.run_folder.states import ToldStates

RUNNING, INTERRUPTED = "running", "interrupted"
MOST_NOTES = 500


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


@dataclass
class ReportedTurn:
    """``ended`` is empty without a recorded end. ``summary``: what the turn says of itself, or why it failed."""

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
    tests: list[TestRun] = field(default_factory=list)


@dataclass(frozen=True)
class Visit:
    """A step's visit; ``step`` as in the event, after the unit that called its flow."""

    step: str
    visit: int
    at: str


@dataclass(frozen=True)
class Note:
    """Something to know that does not belong to a turn."""

    at: str
    words: str


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
        self.states = ToldStates()
        self.roles: list[str] = []
        self.began = ""
        self.at = ""

    @classmethod
    def of(cls, inherited: Iterable[Record], own: Iterable[Record]) -> Story:
        """Build the story. ``inherited``: the events of the runs before a fork."""
        story = cls()
        for record in inherited:
            story._apply(record)
        for turn in story.turns.values():
            turn.inherited = True
        for record in own:
            story._apply(record)
            story.progress.apply(record)
        return story

    @property
    def worked(self) -> list[ReportedTurn | TestRun]:
        """All turns and test runs."""
        return [*self.turns.values(), *self.tests.values()]

    def _apply(self, record: Record) -> None:
        self.began = self.began or record["at"]
        handler = _HANDLERS.get(record["type"])
        if handler is not None:
            handler(self, record)
        self.states.apply(record)
        self.at = record["at"]

    def _run_started(self, record: Record) -> None:
        """End what the previous session left open with that session's last event: nothing more is known about it."""
        self.roles = list(record["roles"])
        for each in self.worked:
            if not each.ended:
                each.ended, each.status = self.at, INTERRUPTED

    def _turn_started(self, record: Record) -> None:
        key = (record["role"], record["turn"])
        turn = ReportedTurn(*key, record["at"], repair_of=record["repair_of"])
        turn.continues = record.get("continues")
        self.turns.setdefault(key, turn)

    def _turn_ended(self, record: Record) -> None:
        if turn := self._turn_of(record):
            turn.ended, turn.status = record["at"], record["status"]
            turn.summary = record["summary"] or record["reason"]

    def _files_applied(self, record: Record) -> None:
        if turn := self._turn_of(record):
            turn.written += record["written"]

    def _tests_started(self, record: Record) -> None:
        tests = TestRun(record["number"], record["role"], record["turn"], record["at"])
        self.tests[record["number"]] = tests
        if turn := self._turn_of(record):
            turn.tests.append(tests)

    def _tests_ended(self, record: Record) -> None:
        if tests := self.tests.get(record["number"]):
            tests.ended, tests.status = record["at"], record["status"]
            tests.passed, tests.failed = record["passed"], record["failed"]
            tests.errors, tests.skipped = record["errors"], record["skipped"]

    def _step_started(self, record: Record) -> None:
        # A resumed run reports its current visit again.
        self.visits.setdefault((record["step"], record["visit"]), Visit(record["step"], record["visit"], record["at"]))

    def _note(self, record: Record) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append(Note(record["at"], one_line(_NOTE_WORDS[record["type"]](record), 500)))
        else:
            self.notes_left_out += 1

    def _turn_of(self, record: Record) -> ReportedTurn | None:
        return self.turns.get((record["role"], record["turn"]))


_NOTE_WORDS: dict[str, Callable[[Record], str]] = {
    "warning": lambda record: record["message"],
    "protected_restored": lambda record: (
        f"{record['role'] or 'before tests'}: protected, put back as before: {', '.join(record['paths'])}"
    ),
    "role_restarted": lambda record: f"{record['role']}: restarted: {record['reason']}",
    "role_skipped": lambda record: f"{record['role']}: skipped: {record['reason']}; the run went on without it",
    "done_ignored": lambda record: f"{record['role']}: said DONE, which is not this role's to say",
}
_HANDLERS: dict[str, Callable[[Story, Record], None]] = {
    "run_started": Story._run_started,
    "turn_started": Story._turn_started,
    "turn_ended": Story._turn_ended,
    "files_applied": Story._files_applied,
    "tests_started": Story._tests_started,
    "tests_ended": Story._tests_ended,
    "step_started": Story._step_started,
    **dict.fromkeys(_NOTE_WORDS, Story._note),
}
