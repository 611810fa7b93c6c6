"""Where in its flow a run is: its step, its cycle, the tasks of its fan-out."""

from __future__ import annotations

from dataclasses import dataclass, field

from codex_multi_role.presentation.outcome import status_in_words
from codex_multi_role.presentation.wording import named
from codex_multi_role.run_folder import states

ENDED_TASKS = frozenset({states.COMPLETED, states.FAILED, states.SKIPPED})
NAMED_STATES = (states.IN_PROGRESS, states.FAILED, states.SKIPPED)
"""The states of tasks that are shown with the tasks' names; the others are only counted."""
TASKS_NAMED = 5


@dataclass(frozen=True)
class Task:
    """An item of a fan-out."""

    name: str
    state: str


@dataclass
class FlowPosition:
    """Where in its flow a run is. ``step`` may belong to a called flow, ``current_step`` is the run's own.

    ``steps``: the run's own, with their visits so far. ``cycles``: 0 if its flow does not use them. ``finished``: the
    roles that had their turn in this cycle. ``state``: the run's, if its flow names states. ``tasks``: those of the
    latest fan-out, by unit.
    """

    step: str = ""
    current_step: str = ""
    steps: dict[str, int] = field(default_factory=dict)
    cycle: int = 0
    cycles: int = 0
    finished: set[str] = field(default_factory=set)
    state: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)

    @property
    def tasks_over(self) -> int:
        return sum(task.state in ENDED_TASKS for task in self.tasks.values())

    @property
    def in_words(self) -> str:
        tasks = f"{self.tasks_over} of {len(self.tasks)} tasks" if self.tasks else ""
        return ", ".join(filter(None, (self.state or self.cycle_in_words or self._step_in_words, tasks)))

    @property
    def tasks_in_words(self) -> str:
        """``in progress: T2, T3; failed: T1``; empty outside of a fan-out."""
        by_state = {state: [task.name for task in self.tasks.values() if task.state == state] for state in NAMED_STATES}
        words = (
            f"{status_in_words(state).lower()}: {named(names, TASKS_NAMED)}"
            for state, names in by_state.items()
            if names
        )
        return "; ".join(words)

    @property
    def cycle_in_words(self) -> str:
        """``cycle 2 of 3``; empty in a run without cycles, or with only one."""
        if not self.cycle or self.cycles < 2:
            return ""
        return f"cycle {self.cycle}" + (f" of {self.cycles}" if self.cycle <= self.cycles else "")

    @property
    def _step_in_words(self) -> str:
        """Empty if the flow is a single step."""
        return f"step {self.step}" if self.step and list(self.steps) != [self.step] else ""

    def task_of(self, unit: str) -> str:
        """The name of the task that a unit is a part of; empty outside of a fan-out."""
        task = self.tasks.get(unit.partition("/")[0])
        return task.name if task is not None else ""

    def step_of(self, unit: str) -> str:
        """The run's own step that a unit is a part of: its id, which may have dots, begins the unit's key."""
        name = unit.partition("/")[0]
        while name and name not in self.steps:
            name = name.rpartition(".")[0]
        return name or self.current_step

    def share(self, roles: int) -> float | None:
        if self.tasks:
            return self.tasks_over / len(self.tasks)
        if not (self.cycle and self.cycles and roles):
            return None
        return min(1.0, (self.cycle - 1 + len(self.finished) / roles) / self.cycles)
