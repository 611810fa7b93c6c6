"""What a run is doing, computed from its events alone; prints nothing and reads no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from codex_multi_role.presentation.progress_events import EVENT_HANDLERS
from codex_multi_role.presentation.role_progress import ENDED_TASKS, RoleProgress
from codex_multi_role.presentation.wording import seconds_between
from codex_multi_role.run_folder import Record

OF_ANOTHER_VERSION = (LookupError, TypeError, AttributeError)
"""What an event raises if a field is missing or has another type."""


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
