"""What a run is doing, computed from its events alone; prints nothing and reads no clock.

A new event needs one function here and one line in `EVENT_HANDLERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from codex_multi_role.presentation.wording import seconds_between
from codex_multi_role.run_folder import Record, states

STARTING, READY, WORKING, REPAIRING, SKIPPED = "starting", "ready", "working", "repairing", "skipped"
ENDED_TASKS = frozenset({states.COMPLETED, states.FAILED, states.SKIPPED})
BUSY = frozenset({WORKING, REPAIRING})
OF_ANOTHER_VERSION = (LookupError, TypeError, AttributeError)
"""What an event raises if a field is missing or has another type."""


@dataclass
class RoleProgress:
    """One role. ``state``: a constant of this module or, after a turn, its status. Tokens and seconds add up."""

    name: str
    state: str = STARTING
    turn: int = 0
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    working_since: str = ""
    last: str = ""


@dataclass
class Progress:
    """The whole run. ``at`` is the time of the latest event, ``began`` of the first since the (re)start.

    ``step`` may belong to a called flow, ``current_step`` is the run's own; ``steps``: the run's own, with their visits
    so far. ``limits``: as in `RunStarted`. ``state``: the run's, if its flow names states. ``tasks``: those of the
    latest fan-out, by unit. ``questions``: those a person is asked now, by key. ``worked``: how long the run was
    worked on, in seconds, as of ``worked_at``; waiting for a person does not count.
    """

    run_id: str = ""
    goal: str = ""
    flow: str = ""
    folder: str = ""
    playbook: str | None = None
    resumed: bool = False
    began: str = ""
    at: str = ""
    step: str = ""
    current_step: str = ""
    steps: dict[str, int] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    turns_begun: int = 0
    worked: float = 0.0
    worked_at: str = ""
    cycle: int = 0
    cycles: int = 0
    roles: dict[str, RoleProgress] = field(default_factory=dict)
    finished_in_cycle: set[str] = field(default_factory=set)
    tests: Record | None = None
    written: dict[str, None] = field(default_factory=dict)
    files_written: int = 0
    files_skipped: int = 0
    state: str = ""
    tasks: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    ended: Record | None = None

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """Return the state after ``records``."""
        progress = cls()
        for record in records:
            progress.apply(record)
        return progress

    def apply(self, record: Record) -> None:
        """Apply one event; types of a newer version are ignored."""
        self.at = record["at"]
        handler = EVENT_HANDLERS.get(record["type"])
        if handler is not None:
            handler(self, record)

    def role(self, record: Record) -> RoleProgress:
        return self.roles.setdefault(record["role"], RoleProgress(record["role"]))

    @property
    def tokens(self) -> int:
        """Input and output tokens of all roles."""
        return sum(role.input_tokens + role.output_tokens for role in self.roles.values())

    @property
    def tasks_over(self) -> int:
        return sum(state in ENDED_TASKS for state in self.tasks.values())

    def left(self, now: str) -> dict[str, float]:
        """Return what is left of each limit at ``now`` (an event's ``at``)."""
        used = {"turns": self.turns_begun, "tokens": self.tokens, "seconds": self.worked_until(now)}
        return {name: max(0.0, limit - used.get(name, 0.0)) for name, limit in self.limits.items()}

    def worked_until(self, now: str) -> float:
        """Return ``worked`` at ``now``."""
        stands_still = self.questions or self.ended
        return self.worked + (0.0 if stands_still else seconds_between(self.worked_at, now))

    @property
    def where(self) -> str:
        """``cycle 2 of 3``, or the run's state if it has one; within a fan-out also ``1 of 4 tasks``.

        A flow may repeat more often than the cycles it was given, or not use cycles at all.
        """
        tasks = f", {self.tasks_over} of {len(self.tasks)} tasks" if self.tasks else ""
        return f"{self.state or self._cycle_in_words}{tasks}"

    @property
    def _cycle_in_words(self) -> str:
        if not self.cycle:
            return f"step {self.step}" if self.step else ""
        return f"cycle {self.cycle}" + (f" of {self.cycles}" if self.cycle <= self.cycles else "")

    @property
    def share(self) -> float | None:
        """The completed share of a fan-out, otherwise of the cycles, 0 to 1; None without either."""
        if self.tasks:
            return self.tasks_over / len(self.tasks)
        if not (self.cycle and self.cycles and self.roles):
            return None
        return min(1.0, (self.cycle - 1 + len(self.finished_in_cycle) / len(self.roles)) / self.cycles)


def _run_started(progress: Progress, record: Record) -> None:
    for name in ("run_id", "goal", "flow", "folder", "playbook", "resumed", "cycles"):
        setattr(progress, name, record[name])
    _count_work(progress, record)
    progress.began, progress.ended = record["at"], None
    progress.limits = record.get("limits", {})
    progress.steps = {name: progress.steps.get(name, 0) for name in record.get("steps", [])}
    progress.questions.clear()
    for name in record["roles"]:
        role = progress.roles.setdefault(name, RoleProgress(name))
        role.state, role.working_since = STARTING, ""


def _role_started(progress: Progress, record: Record) -> None:
    progress.role(record).state = READY


def _step_started(progress: Progress, record: Record) -> None:
    progress.step = record["step"]
    if not _is_called(record["step"]):
        progress.current_step = record["step"]
        progress.steps[record["step"]] = max(progress.steps.get(record["step"], 0), record["visit"])
        visit = f"{record['step']}.{record['visit']}"
        progress.tasks = {unit: state for unit, state in progress.tasks.items() if unit.rpartition(".")[0] == visit}
    _enter_cycle(progress, record["cycle"])


def _enter_cycle(progress: Progress, cycle: int | None) -> None:
    if cycle and cycle != progress.cycle:
        progress.cycle = cycle
        progress.finished_in_cycle.clear()


def _turn_started(progress: Progress, record: Record) -> None:
    _enter_cycle(progress, record["cycle"])
    progress.turns_begun += 1
    role = progress.role(record)
    role.turn = record["turn"]
    role.state = WORKING if record["repair_of"] is None else REPAIRING
    role.working_since = record["at"]
    _count_work(progress, record)


def _count_work(progress: Progress, record: Record) -> None:
    progress.worked = record.get("worked_seconds", progress.worked_until(record["at"]))
    progress.worked_at = record["at"]


def _role_activity(progress: Progress, record: Record) -> None:
    progress.role(record).last = record["activity"]


def _approval(progress: Progress, record: Record) -> None:
    progress.role(record).last = f"{record['decision']}: {record['detail']}"


def _tool_called(progress: Progress, record: Record) -> None:
    progress.role(record).last = f"tool {record['tool']}{'' if record['success'] else ' failed'}"


def _turn_ended(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = record["status"], ""
    role.turn = record["turn"]
    role.turns += 1
    role.input_tokens += record["input_tokens"]
    role.output_tokens += record["output_tokens"]
    role.seconds += record["seconds"]
    role.last = record["summary"] or record["reason"] or role.last
    progress.finished_in_cycle.add(role.name)
    _count_work(progress, record)


def _reply_repaired(progress: Progress, record: Record) -> None:
    progress.role(record).last = "a damaged answer was repaired without asking again"


def _files_applied(progress: Progress, record: Record) -> None:
    progress.files_written += record["written"]
    progress.files_skipped += record["skipped"]
    if record["written"]:
        progress.written.update(dict.fromkeys(record["paths"]))


def _protected_restored(progress: Progress, record: Record) -> None:
    paths = ", ".join(record["paths"])
    progress.warnings.append(f"{record['role'] or 'before tests'}: protected, put back as before: {paths}")


def _tests_started(progress: Progress, record: Record) -> None:
    progress.tests = {"number": record["number"], "status": "running"}


def _tests_ended(progress: Progress, record: Record) -> None:
    progress.tests = {name: value for name, value in record.items() if name not in ("type", "at")}


def _done_ignored(progress: Progress, record: Record) -> None:
    progress.role(record).last = "said DONE, which is not this role's to say"


def _role_restarted(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = STARTING, ""
    role.last = f"restarted: {record['reason']}"


def _roles_reloaded(progress: Progress, record: Record) -> None:
    for name, keys in record["roles"].items():
        if name in progress.roles:
            progress.roles[name].last = f"its file was changed: {', '.join(keys)}"


def _role_skipped(progress: Progress, record: Record) -> None:
    role = progress.role(record)
    role.state, role.working_since = SKIPPED, ""
    role.last = record["reason"]


def _review_asked(progress: Progress, record: Record) -> None:
    _count_work(progress, record)
    progress.questions[record["key"]] = record["question"]


def _review_answered(progress: Progress, record: Record) -> None:
    _count_work(progress, record)
    progress.questions.pop(record["key"], None)


def _state_changed(progress: Progress, record: Record) -> None:
    if not record["unit"]:
        progress.state = record["state"]
    elif not _is_called(record["unit"]):
        progress.tasks[record["unit"]] = record["state"]


def _is_called(key: str) -> bool:
    """Whether the step or unit is in a flow that the run's flow called."""
    return "/" in key


def _warning(progress: Progress, record: Record) -> None:
    progress.warnings.append(record["message"])


def _run_ended(progress: Progress, record: Record) -> None:
    progress.ended = record
    progress.worked, progress.worked_at = record["totals"].get("seconds", progress.worked), record["at"]
    for role in progress.roles.values():
        role.working_since = ""
        if role.state in BUSY:
            role.state = "interrupted"


EVENT_HANDLERS: dict[str, Callable[[Progress, Record], None]] = {
    "run_started": _run_started,
    "role_started": _role_started,
    "step_started": _step_started,
    "turn_started": _turn_started,
    "role_activity": _role_activity,
    "approval": _approval,
    "tool_called": _tool_called,
    "turn_ended": _turn_ended,
    "reply_repaired": _reply_repaired,
    "files_applied": _files_applied,
    "protected_restored": _protected_restored,
    "tests_started": _tests_started,
    "tests_ended": _tests_ended,
    "done_ignored": _done_ignored,
    "role_restarted": _role_restarted,
    "roles_reloaded": _roles_reloaded,
    "role_skipped": _role_skipped,
    "review_asked": _review_asked,
    "review_answered": _review_answered,
    "state_changed": _state_changed,
    "warning": _warning,
    "run_ended": _run_ended,
}
