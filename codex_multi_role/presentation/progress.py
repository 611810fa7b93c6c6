"""What a run is doing, computed from its events alone; prints nothing and reads no clock.

A new event needs one function here, registered for its class.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import Self

from codex_multi_role.presentation.outcome import incident_in_words
from codex_multi_role.presentation.position import FlowPosition, Task
from codex_multi_role.presentation.wording import plural, seconds_between
from codex_multi_role.run_folder import RunEvent, events
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import has_reached_end

STARTING, READY, WORKING, REPAIRING, SKIPPED = "starting", "ready", "working", "repairing", "skipped"
INTERRUPTED = "interrupted"
AT_WORK = frozenset({WORKING, REPAIRING})
BEFORE_FIRST_TURN = frozenset({STARTING, READY, SKIPPED})
ANSWERING, THINKING = "writing its answer", "thinking"
ACTIVITIES = {"message": ANSWERING, "reasoning": THINKING}
"""Codex's words for what a role does between its tools and commands."""
NOT_STARTED = events.RunStarted("", "", "", 0, [], "", "", None, resumed=False)


@dataclass
class RoleProgress:
    """One role. ``state``: a constant of this module or, after a turn, its status. Tokens, cost and seconds add up.

    ``last``: its current tool or command or, after a turn, what it said. ``task``: the name of the one it works on.
    ``step``: the run's own step that its latest turn belongs to. ``counted``: what they contain of its running turn.
    """

    name: str
    state: str = STARTING
    turn: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Cost = field(default_factory=Cost)
    seconds: float = 0.0
    working_since: str = ""
    last: str = ""
    task: str = ""
    step: str = ""
    counted: events.UsageCounted | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def has_cost(self) -> bool:
        """Whether a turn of it has ended, or has used something."""
        return bool(self.turns or self.counted)

    @property
    def doing(self) -> str:
        """``T2: command: pytest -q``."""
        return ": ".join(filter(None, (self.task, self.last)))

    def seconds_at(self, now: str) -> float:
        return self.seconds + seconds_between(self.working_since, now)


@dataclass
class WorkDone:
    """What counts towards the run's ``limits`` (as in `RunStarted`): turns started, and ``seconds`` as of ``at``.

    Waiting for a person does not count.
    """

    limits: dict[str, float] = field(default_factory=dict)
    turns: int = 0
    seconds: float = 0.0
    at: str = ""


@dataclass
class WrittenFiles:
    """``paths``: each once; ``written`` and ``skipped`` count every time."""

    paths: dict[str, None] = field(default_factory=dict)
    written: int = 0
    skipped: int = 0

    @property
    def in_words(self) -> str:
        return f"{self.written} written" + (f", {self.skipped} skipped" if self.skipped else "")


@dataclass
class Progress:
    """The whole run. ``started``: its latest session's start. ``at`` is the time of the latest event.

    ``step_costs``: of the run's own steps, with what they called.
    ``tests``: the latest, with the status ``running`` until they end. ``questions``: those a person is asked now, by
    key. ``starting``: the roles whose processes the session started at once. ``forked``: from where and how, if the run
    is a fork. ``folder``: where a viewer reads it, if that is another process than the run's.
    """

    folder: Path | None = None
    started: events.RunStarted = NOT_STARTED
    at: str = ""
    position: FlowPosition = field(default_factory=FlowPosition)
    work: WorkDone = field(default_factory=WorkDone)
    roles: dict[str, RoleProgress] = field(default_factory=dict)
    step_costs: dict[str, Cost] = field(default_factory=dict)
    tests: events.TestsEnded | None = None
    baseline: events.BaselineMeasured | None = None
    files: WrittenFiles = field(default_factory=WrittenFiles)
    questions: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    starting: list[str] = field(default_factory=list)
    forked: str = ""
    ended: events.RunEnded | None = None

    @classmethod
    def of(cls, told: Iterable[RunEvent]) -> Self:
        """Return the state after these events."""
        progress = cls()
        for event in told:
            progress.apply(event)
        return progress

    def apply(self, event: RunEvent) -> None:
        """Apply one event."""
        self.at = event.at or self.at
        handler = _apply.registry.get(type(event))  # a call of `_apply` takes longer than most handlers
        if handler is not None:
            handler(event, self)

    def role(self, name: str) -> RoleProgress:
        return self.roles.setdefault(name, RoleProgress(name))

    @property
    def turns(self) -> int:
        """The turns that have ended."""
        return sum(role.turns for role in self.roles.values())

    @property
    def input_tokens(self) -> int:
        return sum(role.input_tokens for role in self.roles.values())

    @property
    def output_tokens(self) -> int:
        return sum(role.output_tokens for role in self.roles.values())

    @property
    def tokens(self) -> int:
        """Input and output tokens of all roles."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> Cost:
        """Of all roles."""
        return sum((role.cost for role in self.roles.values()), Cost())

    def left(self, now: str) -> dict[str, float]:
        """Return what is left of each limit at ``now`` (an event's ``at``)."""
        used = {"turns": self.work.turns, "tokens": self.tokens, "seconds": self.worked_until(now)}
        used["cost"] = float(self.cost.amount)
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
        if self._has_reached_end:
            return self.position.cycle_in_words
        return self._starting_in_words or self.position.in_words

    @property
    def _has_reached_end(self) -> bool:
        return self.ended is not None and has_reached_end(vars(self.ended))

    @property
    def _starting_in_words(self) -> str:
        """Empty as soon as all processes are ready, or one of them has a turn."""
        found = [self.roles[name].state for name in self.starting]
        at_work = self.position.tasks or any(role.state in AT_WORK for role in self.roles.values())
        if self.ended or at_work or STARTING not in found or not BEFORE_FIRST_TURN.issuperset(found):
            return ""
        ready = f", {found.count(READY)} ready" if READY in found else ""
        return f"starting {plural(len(found), 'Codex process')}{ready}"

    @property
    def share(self) -> float | None:
        """The completed share of a fan-out, otherwise of the cycles, 0 to 1; None without either.

        It is 1 once the flow has ended.
        """
        if self._has_reached_end:
            return 1.0
        return self.position.share(len(self.roles))


@singledispatch
def _apply(event: RunEvent, progress: Progress) -> None:
    """What an event changes: the functions registered for its class; others change nothing."""


@_apply.register
def _run_started(event: events.RunStarted, progress: Progress) -> None:
    progress.started, progress.ended = event, None
    progress.position.cycles, progress.work.limits = event.cycles, event.limits
    _count_work(progress, event.at, event.worked_seconds)
    progress.position.steps = {name: progress.position.steps.get(name, 0) for name in event.steps}
    progress.questions.clear()
    progress.starting = []
    for name in event.roles:
        role = progress.role(name)
        _stop_working(role)
        if role.state == READY:  # after a turn it keeps its status until a process starts for it
            role.state = STARTING


@_apply.register
def _processes_starting(event: events.ProcessesStarting, progress: Progress) -> None:
    progress.starting = event.roles
    for role in map(progress.role, event.roles):
        role.state = STARTING


@_apply.register
def _role_started(event: events.RoleStarted, progress: Progress) -> None:
    progress.role(event.role).state = READY


@_apply.register
def _step_started(event: events.StepStarted, progress: Progress) -> None:
    position = progress.position
    position.step = event.step
    if not _is_called(event.step):
        position.current_step = event.step
        position.steps[event.step] = max(position.steps.get(event.step, 0), event.visit)
        visit = f"{event.step}.{event.visit}"
        position.tasks = {unit: task for unit, task in position.tasks.items() if unit.rpartition(".")[0] == visit}
    _enter_cycle(position, event.cycle)


def _enter_cycle(position: FlowPosition, cycle: int) -> None:
    """``cycle``: that of the flow with the latest step; a called flow has its own."""
    if cycle and cycle != position.cycle and not _is_called(position.step):
        position.cycle = cycle
        position.finished.clear()


@_apply.register
def _turn_started(event: events.TurnStarted, progress: Progress) -> None:
    _enter_cycle(progress.position, event.cycle)
    progress.work.turns += 1
    role = progress.role(event.role)
    role.turn = event.turn
    role.state = WORKING if event.repair_of is None else REPAIRING
    role.working_since = event.at
    role.task, role.last = progress.position.task_of(event.unit), THINKING
    role.step = progress.position.step_of(event.unit)
    _count_work(progress, event.at, event.worked_seconds)


def _count_work(progress: Progress, at: str, worked: float | None = None) -> None:
    """``worked`` as in `TurnEnded`; None for an event without it."""
    progress.work.seconds, progress.work.at = progress.worked_until(at) if worked is None else worked, at


@_apply.register
def _role_activity(event: events.RoleActivity, progress: Progress) -> None:
    role = progress.role(event.role)
    words = ACTIVITIES.get(event.activity)
    if words is None or role.last in ACTIVITIES.values():  # a message does not replace the latest tool or command
        role.last = words or event.activity


@_apply.register
def _approval(event: events.Approval, progress: Progress) -> None:
    progress.role(event.role).last = f"{event.decision}: {event.detail}"


@_apply.register
def _tool_called(event: events.ToolCalled, progress: Progress) -> None:
    progress.role(event.role).last = f"tool {event.tool}{'' if event.success else ' failed'}"


@_apply.register
def _turn_ended(event: events.TurnEnded, progress: Progress) -> None:
    role = progress.role(event.role)
    role.state, role.working_since = event.status, ""
    role.task = ""
    role.turn = event.turn
    role.turns += 1
    _count_usage(progress, role, event)
    role.counted = None
    role.seconds += event.seconds
    role.last = event.summary or event.reason
    if event.status != INTERRUPTED:
        progress.position.finished.add(role.name)
    if event.reused_from:
        progress.work.turns -= 1  # counted at its start; the role was not asked
    _count_work(progress, event.at, event.worked_seconds)


@_apply.register
def _usage_counted(event: events.UsageCounted, progress: Progress) -> None:
    role = progress.role(event.role)
    _count_usage(progress, role, event)
    role.counted = event


def _count_usage(progress: Progress, role: RoleProgress, now: events.UsageCounted | events.TurnEnded) -> None:
    """Count what the running turn has used instead of what was counted of it before."""
    cost, before = Cost.of(now.cost), role.counted
    role.input_tokens += now.input_tokens
    role.output_tokens += now.output_tokens
    if before is not None:
        cost -= Cost.of(before.cost)
        role.input_tokens -= before.input_tokens
        role.output_tokens -= before.output_tokens
    role.cost += cost
    progress.step_costs[role.step] = progress.step_costs.get(role.step, Cost()) + cost


@_apply.register
def _reply_repaired(event: events.ReplyRepaired, progress: Progress) -> None:
    progress.role(event.role).last = "a damaged answer was repaired without asking again"


@_apply.register
def _files_applied(event: events.FilesApplied, progress: Progress) -> None:
    progress.files.written += event.written
    progress.files.skipped += event.skipped
    if event.written:
        progress.files.paths.update(dict.fromkeys(event.paths))


@_apply.register
def _protected_restored(event: events.ProtectedRestored, progress: Progress) -> None:
    progress.warnings.append(f"{event.role or 'before tests'}: {incident_in_words(event)}")


@_apply.register
def _tests_started(event: events.TestsStarted, progress: Progress) -> None:
    progress.tests = events.TestsEnded(event.number, "running", passed=0, failed=0, errors=0, skipped=0, seconds=0.0)


@_apply.register
def _tests_ended(event: events.TestsEnded, progress: Progress) -> None:
    progress.tests = event


@_apply.register
def _baseline_started(event: events.BaselineStarted, progress: Progress) -> None:
    if not event.in_copy:
        seconds = event.last_seconds
        progress.baseline = events.BaselineMeasured("running", passed=0, failed=0, errors=0, skipped=0, seconds=seconds)


@_apply.register
def _baseline_measured(event: events.BaselineMeasured, progress: Progress) -> None:
    if not event.in_copy:
        progress.baseline = event


@_apply.register
def _done_ignored(event: events.DoneIgnored, progress: Progress) -> None:
    progress.role(event.role).last = incident_in_words(event)


@_apply.register
def _role_restarted(event: events.RoleRestarted, progress: Progress) -> None:
    role = progress.role(event.role)
    role.state, role.working_since = STARTING, ""
    role.last = incident_in_words(event)


@_apply.register
def _roles_reloaded(event: events.RolesReloaded, progress: Progress) -> None:
    for name, keys in event.roles.items():
        if name in progress.roles:
            progress.roles[name].last = f"its file was changed: {', '.join(keys)}"


@_apply.register
def _role_skipped(event: events.RoleSkipped, progress: Progress) -> None:
    role = progress.role(event.role)
    role.state, role.working_since = SKIPPED, ""
    role.last = event.reason


@_apply.register
def _review_asked(event: events.ReviewAsked, progress: Progress) -> None:
    _count_work(progress, event.at)
    progress.questions[event.key] = event.question


@_apply.register
def _review_answered(event: events.ReviewAnswered, progress: Progress) -> None:
    _count_work(progress, event.at)
    progress.questions.pop(event.key, None)


@_apply.register
def _state_changed(event: events.StateChanged, progress: Progress) -> None:
    if not event.unit:
        progress.position.state = event.state
    elif not _is_called(event.unit):
        progress.position.tasks[event.unit] = Task(event.item, event.state)


def _is_called(key: str) -> bool:
    """Whether the step or unit is in a flow that the run's flow called."""
    return "/" in key


@_apply.register
def _warning(event: events.Warning, progress: Progress) -> None:
    progress.warnings.append(event.message)


@_apply.register
def _run_forked(event: events.RunForked, progress: Progress) -> None:
    progress.forked = event.message


@_apply.register
def _run_ended(event: events.RunEnded, progress: Progress) -> None:
    progress.ended = event
    if progress.baseline is not None and progress.baseline.status == "running":
        progress.baseline = None  # stopped with the run
    progress.work.seconds, progress.work.at = event.totals.get("seconds") or progress.work.seconds, event.at
    for role in progress.roles.values():
        _stop_working(role)


def _stop_working(role: RoleProgress) -> None:
    role.working_since = ""
    if role.state in AT_WORK:
        role.state = INTERRUPTED


WITHIN_TURNS = {events.RoleActivity, events.UsageCounted, events.Approval, events.ToolCalled}
LASTING_EVENTS = frozenset(_apply.registry) - {object, *WITHIN_TURNS}
"""The events that change more than what a role does, and has used, within its turn."""
