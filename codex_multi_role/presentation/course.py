"""What happens in a run, folded from its events alone: the one model that every view shows, live and afterwards.

It prints nothing, reads no clock, and counts everything once. A new event needs a case in `_apply`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any, Self

from codex_multi_role.errors import RunStatus
from codex_multi_role.presentation.outcome import ASKS, BUSY, WARN, Incident, added_in_words, incident_in_words, tone_of
from codex_multi_role.presentation.pieces import (
    AT_WORK,
    ENDED_TASKS,
    INTERRUPTED,
    READY,
    REPAIRING,
    RUNNING,
    STARTING,
    WORKING,
    Note,
    ReportedTurn,
    RoleNow,
    TestRun,
    Used,
    WorkDone,
    WorkPiece,
    WrittenFiles,
)
from codex_multi_role.presentation.wording import answer_in_words, one_line, plural, seconds_between
from codex_multi_role.run_folder import RunEvent, RunFolder, events, skim_events
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.event_log import TYPES
from codex_multi_role.run_folder.folder import has_reached_end
from codex_multi_role.run_folder.states import COMPLETED, FAILED, IN_PROGRESS, RUN

ANSWERING, THINKING = "writing its answer", "thinking"
ACTIVITIES = {"message": ANSWERING, "reasoning": THINKING}
"""Codex's words for what a role does between its tools and commands."""
NOT_STARTED = events.RunStarted("", "", "", 0, [], "", "", None, resumed=False)
SKIPPED_ROLE = "skipped"
BEFORE_FIRST_TURN = frozenset({STARTING, READY, SKIPPED_ROLE})
MOST_NOTES = 500
_TRY = re.compile(r"/try-(\d+)$")


@dataclass
class Course:
    """The whole run. ``started``: its latest session's start. ``at`` is the time of the latest event.

    ``pieces``: by key, in order; the first is the run itself. ``steps``: its own, with their visits so far;
    ``step_costs``: with what they called. ``questions``: those a person is asked now, by key. ``forked``: from where
    and how, if the run is a fork. ``folder``: where a viewer reads it, if that is another process than the run's.
    """

    folder: Path | None = None
    started: events.RunStarted = NOT_STARTED
    ended: events.RunEnded | None = None
    forked: str = ""
    began: str = ""
    at: str = ""
    pieces: dict[str, WorkPiece] = field(default_factory=lambda: {RUN: WorkPiece(RUN, "")})
    turns: dict[tuple[str, int], ReportedTurn] = field(default_factory=dict)
    tests: dict[int, TestRun] = field(default_factory=dict)
    baseline: events.BaselineMeasured | None = None
    roles: dict[str, RoleNow] = field(default_factory=dict)
    used: Used = field(default_factory=Used)
    steps: dict[str, int] = field(default_factory=dict)
    step_costs: dict[str, Cost] = field(default_factory=dict)
    cycle: int = 0
    work: WorkDone = field(default_factory=WorkDone)
    files: WrittenFiles = field(default_factory=WrittenFiles)
    questions: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    notes_left_out: int = 0

    @classmethod
    def of(cls, told: Iterable[RunEvent], inherited: Iterable[RunEvent] = ()) -> Self:
        """Return the course after these events. ``inherited``: those of the runs before a fork, which do not count."""
        course = cls()
        course.inherit(inherited)
        for event in told:
            course.apply(event)
        return course

    @classmethod
    def of_run(cls, folder: RunFolder) -> Self:
        """Return the course of the run in ``folder``, without what its roles did last within their turns."""
        return cls.of(skim_events(folder.events_path, LASTING_EVENTS), inherited_by(folder))

    def apply(self, event: RunEvent) -> None:
        """Fold one event into it."""
        self.began = self.began or event.at
        _apply(event, self)
        self.at = event.at or self.at

    def inherit(self, past: Iterable[RunEvent]) -> None:
        """Begin with the past of a fork, whose turns are not the fork's own."""
        for event in past:
            self.apply(event)
        if not self.at:
            return
        self._end_open(self.at)
        for turn in self.turns.values():
            turn.inherited = True
        fresh = type(self)(self.folder)
        fresh.pieces, fresh.turns, fresh.tests, fresh.baseline = self.pieces, self.turns, self.tests, self.baseline
        fresh.steps, fresh.cycle, fresh.began, fresh.at = self.steps, self.cycle, self.began, self.at
        vars(self).update(vars(fresh))

    def _end_open(self, at: str) -> None:
        """End what a session left open: nothing more is known about it."""
        for turn in self.turns.values():
            if not turn.ended:
                turn.ended, turn.status = at, INTERRUPTED
        for tests in self.tests.values():
            if not tests.ended:
                tests.end(at, {"status": INTERRUPTED})

    def role(self, name: str) -> RoleNow:
        if name not in self.roles:
            self.roles[name] = RoleNow(name=name)
        return self.roles[name]

    @property
    def run_folder(self) -> RunFolder:
        """Where it is read."""
        return RunFolder(self.folder or Path(self.started.folder))

    @property
    def run(self) -> WorkPiece:
        """The run itself, with its own steps and its states."""
        return self.pieces[RUN]

    @property
    def visits(self) -> list[WorkPiece]:
        """Of all steps, in order."""
        return [piece for piece in self.pieces.values() if piece.key and not piece.is_task]

    @property
    def current(self) -> WorkPiece | None:
        """The latest visit of one of the run's own steps."""
        return self.run.parts[-1] if self.run.parts else None

    @property
    def current_step(self) -> str:
        return self.current.step if self.current else ""

    @property
    def latest_tests(self) -> TestRun | None:
        return next(reversed(self.tests.values()), None)

    @property
    def warnings(self) -> list[str]:
        return [note.words for note in self.notes if note.is_warning]

    @property
    def incidents(self) -> list[Note]:
        """The warnings, and what happened to roles."""
        return [note for note in self.notes if not note.who]

    def asks_in(self, piece: WorkPiece) -> bool:
        """Whether a person is asked something now in the piece, or below it."""
        own = {piece.key, *(f"{turn.role}.turn_{turn.number:03d}" for turn in piece.turns)}
        below = (f"{piece.key}.", f"{piece.key}/")
        return any(key in own or key.startswith(below) for key in self.questions)

    def tone_of(self, piece: WorkPiece, *, alive: bool = True) -> str:
        """How the piece is doing. ``alive``: whether a process works on the run."""
        if piece.state != IN_PROGRESS:
            return WARN if piece.bad else tone_of(piece.state, but=piece.flaw)
        working = BUSY if alive and self.ended is None else WARN
        return ASKS if self.asks_in(piece) else working

    def left(self, now: str) -> dict[str, float]:
        """Return what is left of each limit at ``now`` (an event's ``at``)."""
        used = {"turns": self.work.turns, "tokens": self.used.tokens, "seconds": self.worked_until(now)}
        used["cost"] = float(self.used.cost.amount)
        return {name: max(0.0, limit - used.get(name, 0.0)) for name, limit in self.work.limits.items()}

    def worked_until(self, now: str) -> float:
        """Return how long the run was worked on, in seconds, at ``now``."""
        stands_still = self.questions or self.ended
        return self.work.seconds + (0.0 if stands_still else seconds_between(self.work.at, now))

    @property
    def where(self) -> str:
        """``cycle 2 of 3``, or the run's state if it has one; within a fan-out also ``1 of 4 tasks``.

        Before its first turn, ``starting 4 Codex processes``; after its flow has ended, only the cycle. A flow may
        repeat more often than the cycles it was given, or not use cycles at all.
        """
        if self.has_reached_end:
            return self.cycle_in_words
        return self._starting_in_words or self._place_in_words

    @property
    def has_reached_end(self) -> bool:
        return self.ended is not None and has_reached_end(vars(self.ended))

    @property
    def _starting_in_words(self) -> str:
        """Empty as soon as all processes are ready, or one of them has a turn."""
        found = [role.state for role in self.roles.values() if role.is_awaited]
        at_work = self.tasks or any(role.state in AT_WORK for role in self.roles.values())
        if self.ended or at_work or STARTING not in found or not BEFORE_FIRST_TURN.issuperset(found):
            return ""
        ready = f", {found.count(READY)} ready" if READY in found else ""
        return f"starting {plural(len(found), 'Codex process')}{ready}"

    @property
    def _place_in_words(self) -> str:
        over, tasks = self.tasks_over, self.tasks
        told = f"{over} of {len(tasks)} tasks" if tasks else ""
        return ", ".join(filter(None, (self.run.state or self.cycle_in_words or self._step_in_words, told)))

    @property
    def _step_in_words(self) -> str:
        """Empty if the flow is a single step."""
        latest = next((piece for piece in reversed(self.pieces.values()) if not piece.is_task), self.run)
        if not latest.key or list(self.steps) == [latest.step]:
            return ""
        return f"step {re.sub(r'([.][0-9]+)+(?=/)', '', latest.step)}"

    @property
    def tasks(self) -> list[WorkPiece]:
        """Those of the current step, if it is a fan-out."""
        return self.current.tasks if self.current else []

    @property
    def tasks_over(self) -> int:
        return sum(task.state in ENDED_TASKS for task in self.tasks)

    @property
    def cycle_in_words(self) -> str:
        """``cycle 2 of 3``; empty in a run without cycles, or with only one."""
        cycles = self.started.cycles
        if not self.cycle or cycles < 2:
            return ""
        return f"cycle {self.cycle}" + (f" of {cycles}" if self.cycle <= cycles else "")

    @property
    def share(self) -> float | None:
        """The completed share of a fan-out, otherwise of the cycles, 0 to 1; None without either.

        It is 1 once the flow has ended.
        """
        if self.has_reached_end:
            return 1.0
        if tasks := self.tasks:
            return self.tasks_over / len(tasks)
        cycles = self.started.cycles
        if not (self.cycle and cycles and self.roles):
            return None
        finished = sum(role.cycle == self.cycle for role in self.roles.values())
        return min(1.0, (self.cycle - 1 + finished / len(self.roles)) / cycles)

    def task_of(self, key: str) -> WorkPiece | None:
        """The task of the run's own fan-out that a unit is a part of."""
        piece = self.pieces.get(key.partition("/")[0])
        return piece if piece is not None and piece.is_task else None

    def piece_of(self, unit: str) -> WorkPiece:
        """The piece of a unit; of a team, which has none, the innermost visit that is open."""
        if unit:
            return self.pieces.get(unit) or self.pieces.get(unit.partition("/")[0]) or self.current or self.run
        piece = self.run
        while piece.parts and not piece.parts[-1].is_task and not piece.parts[-1].ended:
            piece = piece.parts[-1]
        return piece

    def step_of(self, turn: ReportedTurn) -> str:
        """The run's own step that the turn belongs to."""
        own = self.pieces.get(turn.piece.partition("/")[0], self.run)
        return (own.step.rpartition(".")[0] if own.is_task else own.step) or self.current_step

    def states_as_json(self) -> dict[str, Any]:
        """``{run, items}``, as ``states.json``."""
        items = [piece.states() for piece in self.pieces.values() if piece.is_task]
        return {"run": self.run.states() if self.run.history else None, "items": items}


def inherited_by(folder: RunFolder) -> Iterable[RunEvent]:
    """The past of a fork; empty for any other run."""
    return skim_events(folder.inherited_events_path, LASTING_EVENTS)


def _apply(event: RunEvent, course: Course) -> None:
    """What an event changes; nothing, if it is none of these."""
    match event:
        case events.TurnEvent():
            _apply_of_turn(event, course)
        case events.StateChanged():
            _state_changed(event, course)
        case events.StepStarted():
            _step_started(event, course)
        case events.StepEnded(step=step, visit=visit):
            if piece := course.pieces.get(f"{step}.{visit}"):
                piece.end(event.state, event.at, event.reason)
                piece.bad, piece.is_met = event.bad, event.met
        case events.ReviewAsked(key=key, question=question):
            _count_work(course, event.at)
            course.questions[key] = question
        case events.ReviewAnswered():
            _review_answered(event, course)
        case events.RunStarted():
            _run_started(event, course)
        case events.RunForked(message=message):
            course.forked = message
        case events.RunEnded():
            _run_ended(event, course)
        case events.Warning(message=message):
            _keep(course, Note(event.at, one_line(message, 500), is_warning=True))
        case events.AddedEvent():
            if words := added_in_words(event):
                _keep(course, Note(event.at, words, event.type.removeprefix(events.ADDED)))
        case _:
            _apply_of_roles(event, course)
            _apply_of_tests(event, course)


def _run_started(event: events.RunStarted, course: Course) -> None:
    course._end_open(course.at)
    course.started, course.ended = event, None
    course.work.limits = event.limits
    _count_work(course, event.at, event.worked_seconds)
    course.steps = {name: course.steps.get(name, 0) for name in event.steps}
    course.questions.clear()
    for role in course.roles.values():
        role.is_awaited = False
    for name in event.roles:
        role = course.role(name)
        _stop_working(role)
        if role.state == READY:  # after a turn it keeps its status until a process starts for it
            role.state = STARTING


def _apply_of_roles(event: RunEvent, course: Course) -> None:
    match event:
        case events.ProcessesStarting(roles=names):
            for role in map(course.role, names):
                role.state, role.is_awaited = STARTING, True
        case events.RoleStarted(role=name):
            course.role(name).state = READY
        case events.RoleRestarted() | events.RoleSkipped():
            role, is_skipped = course.role(event.role), isinstance(event, events.RoleSkipped)
            role.state, role.working_since = SKIPPED_ROLE if is_skipped else STARTING, ""
            role.last = event.reason if is_skipped else incident_in_words(event)
            _note(course, event)
        case events.RolesReloaded(roles=changed):
            for name in changed.keys() & course.roles.keys():
                course.roles[name].last = f"its file was changed: {', '.join(changed[name])}"


def _step_started(event: events.StepStarted, course: Course) -> None:
    key = f"{event.step}.{event.visit}"
    if key not in course.pieces:  # a resumed run reports its current visit again
        _open_visit(course, event, key)
    piece = course.pieces[key]
    if piece.state != IN_PROGRESS:
        piece.move(IN_PROGRESS, event.at)
    if not piece.is_called:
        course.steps[event.step] = max(course.steps.get(event.step, 0), event.visit)
        course.cycle = event.cycle or course.cycle  # a called flow has its own


def _open_visit(course: Course, event: events.StepStarted, key: str) -> None:
    caller, _, name = event.step.rpartition("/")
    tried = _TRY.search(caller)
    above = course.piece_of(_TRY.sub("", caller)) if caller else course.run
    if above.parts and not above.parts[-1].is_task and not above.parts[-1].ended:
        above.parts[-1].end(COMPLETED, event.at)
    course.pieces[key] = WorkPiece(key, name, event.title, attempt=int(tried[1]) if tried else 1)
    above.add(course.pieces[key])


def _state_changed(event: events.StateChanged, course: Course) -> None:
    piece = course.pieces.get(event.unit)
    if piece is None:
        piece = course.pieces[event.unit] = WorkPiece(event.unit, event.item, event.title, is_task=True)
        above = course.piece_of(piece.step)
        above.add(piece)
    piece.move(event.state, event.at, event.reason)


def _apply_of_turn(event: events.TurnEvent, course: Course) -> None:
    match event:
        case events.RoleActivity(activity=activity):
            role, words = course.role(event.role), ACTIVITIES.get(activity)
            if words is None or role.last in ACTIVITIES.values():  # a message does not replace the latest tool
                role.last = words or activity
        case events.UsageCounted():
            _count_usage(course, _turn_of(course, event), event)
        case events.ToolCalled(tool=tool, success=success):
            course.role(event.role).last = f"tool {tool}{'' if success else ' failed'}"
        case events.TurnStarted():
            _turn_started(event, course)
        case events.TurnEnded():
            _turn_ended(event, course)
        case events.Approval(decision=decision, detail=detail):
            course.role(event.role).last = f"{decision}: {detail}"
        case events.ReplyRepaired():
            course.role(event.role).last = "a damaged answer was repaired without asking again"
        case events.FilesApplied():
            _files_applied(event, course)
        case events.DoneIgnored(reason=reason):
            course.role(event.role).last = incident_in_words(event)
            if reason and (turn := course.turns.get((event.role, event.turn))):
                turn.ignored = incident_in_words(event)
            _note(course, event)
        case events.ProtectedRestored():
            _note(course, event)


def _turn_started(event: events.TurnStarted, course: Course) -> None:
    piece = course.piece_of(event.unit)
    if not piece.is_called:
        course.cycle = event.cycle or course.cycle
    course.work.turns += 1
    role = course.role(event.role)
    role.turn, role.working_since, role.last = event.turn, event.at, THINKING
    role.state = WORKING if event.repair_of is None else REPAIRING
    task = course.task_of(event.unit)
    role.task = task.name if task is not None else ""
    if (event.role, event.turn) not in course.turns:
        turn = ReportedTurn(event.role, event.turn, event.at, attempt=event.attempt)
        turn.repair_of, turn.continues = event.repair_of, event.continues
        _begin(course, turn, piece)
    _count_work(course, event.at, event.worked_seconds)


def _count_work(course: Course, at: str, worked: float | None = None) -> None:
    """``worked`` as in `TurnEnded`; None for an event without it."""
    course.work.seconds, course.work.at = course.worked_until(at) if worked is None else worked, at


def _turn_ended(event: events.TurnEnded, course: Course) -> None:
    role, turn = course.role(event.role), _turn_of(course, event)
    role.state, role.working_since, role.task = event.status, "", ""
    role.turn, role.last = event.turn, event.summary or event.reason
    turn.ended, turn.status, turn.summary = event.at, intern(event.status), event.summary or event.reason
    _count_usage(course, turn, event)
    turn.seconds = event.seconds
    for used in (role, course.used):
        used.turns += 1
        used.seconds += event.seconds
    if event.status != INTERRUPTED:
        role.cycle = course.cycle
    if event.reused_from:
        course.work.turns -= 1  # counted at its start; the role was not asked
    _count_work(course, event.at, event.worked_seconds)


def _turn_of(course: Course, event: events.UsageCounted | events.TurnEnded) -> ReportedTurn:
    """The turn, also of a log that lacks its start."""
    known = course.turns.get((event.role, event.turn))
    return known or _begin(course, ReportedTurn(event.role, event.turn, event.at), course.piece_of(""))


def _begin(course: Course, turn: ReportedTurn, piece: WorkPiece) -> ReportedTurn:
    turn.piece = piece.key
    turn.role = course.role(turn.role).name  # one text for all of them
    course.turns[turn.role, turn.number] = turn
    piece.turns = (*piece.turns, turn)
    return turn


def _count_usage(course: Course, turn: ReportedTurn, now: events.UsageCounted | events.TurnEnded) -> None:
    """Count what the turn has used instead of what was counted of it before."""
    cost = Cost.of(now.cost) - (Cost.of(turn.cost) if turn.is_counted else Cost())
    more = (now.input_tokens - turn.input_tokens, now.output_tokens - turn.output_tokens, cost)
    turn.input_tokens, turn.output_tokens, turn.cost = now.input_tokens, now.output_tokens, now.cost
    turn.is_counted = True
    role = course.role(turn.role)
    role.has_cost = True
    role.add(*more)
    course.used.add(*more)
    step = course.step_of(turn)
    course.step_costs[step] = course.step_costs.get(step, Cost()) + cost


def _files_applied(event: events.FilesApplied, course: Course) -> None:
    course.files.written += event.written
    course.files.skipped += event.skipped
    if event.written:
        course.files.paths.update(dict.fromkeys(event.paths))
    if turn := course.turns.get((event.role, event.turn)):
        turn.written += event.written


def _apply_of_tests(event: RunEvent, course: Course) -> None:
    match event:
        case events.TestsStarted():
            tests = course.tests[event.number] = TestRun(event.number, intern(event.role), event.turn, event.at)
            turn = course.turns.get((event.role, event.turn))
            owner = turn if turn is not None else course.piece_of(event.unit)
            owner.tests = (*owner.tests, tests)
        case events.TestsEnded(number=number):
            course.tests.setdefault(number, TestRun(number, "", 0, event.at)).end(event.at, _compact(event))
        case events.BaselineStarted(in_copy=False, last_seconds=seconds):
            course.baseline = events.BaselineMeasured(RUNNING, 0, 0, 0, 0, seconds, at=event.at)
        case events.BaselineMeasured(in_copy=False):
            course.baseline = event


def _compact(event: events.TestsEnded) -> dict[str, Any]:
    """What there is to say of the tests; its short words once in memory."""
    told = {name: value for name, value in vars(event).items() if value and name not in ("type", "at", "number")}
    return {name: intern(value) if isinstance(value, str) else value for name, value in told.items()}


def _note(course: Course, event: Incident) -> None:
    words = one_line(f"{event.role or 'before tests'}: {incident_in_words(event)}", 500)
    _keep(course, Note(event.at, words, is_warning=isinstance(event, events.ProtectedRestored)))


def _keep(course: Course, note: Note) -> None:
    if len(course.notes) < MOST_NOTES:
        course.notes.append(note)
    else:
        course.notes_left_out += 1


def _review_answered(event: events.ReviewAnswered, course: Course) -> None:
    _count_work(course, event.at)
    course.questions.pop(event.key, None)
    if piece := course.pieces.get(event.key):
        chosen = answer_in_words(event.approved, event.option, event.values)
        piece.said = ": ".join(filter(None, (f"{chosen} by {event.by}", event.comment)))


def _run_ended(event: events.RunEnded, course: Course) -> None:
    course.ended = event
    if course.baseline is not None and course.baseline.status == RUNNING:
        course.baseline = None  # stopped with the run
    course.work.seconds, course.work.at = event.totals.get("seconds") or course.work.seconds, event.at
    if course.current and not course.current.ended:  # a step that ends the run by its failure does not end itself
        if event.status == RunStatus.FAILED:
            course.current.end(FAILED, event.at, event.reason)
        elif course.has_reached_end:
            course.current.end(COMPLETED, event.at)
    for role in course.roles.values():
        _stop_working(role)


def _stop_working(role: RoleNow) -> None:
    role.working_since = ""
    if role.state in AT_WORK:
        role.state = INTERRUPTED


WITHIN_TURNS = {events.RoleActivity, events.UsageCounted, events.Approval, events.ToolCalled}
WITHIN_TURNS |= {events.McpCallEnded, events.CommandEnded}
LASTING_EVENTS = frozenset({*TYPES.values(), events.AddedEvent}) - WITHIN_TURNS
"""The events that change more than what a role does, and has used, within its turn."""
