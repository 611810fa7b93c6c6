"""What a batch is doing now: its running goals, the last that ended, and counts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.batches.goal_results import WAITING, GoalResult
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.presentation.course import NOT_STARTED, Course
from codex_multi_role.run_folder import RunEvent
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import RunStarted

LAST_ENDED = 5


@dataclass
class RunningGoal:
    """A goal that runs, and what its run is doing."""

    run: PlannedRun
    course: Course = field(default_factory=Course)


class BatchProgress:
    """``results``: what is known at the start, of all goals."""

    def __init__(self, results: Iterable[GoalResult], todo: Iterable[PlannedRun]) -> None:
        to_run = {run.id for run in todo}
        self.running: dict[str, RunningGoal] = {}
        self.last: deque[GoalResult] = deque(maxlen=LAST_ENDED)
        self.codes: Counter[ExitCode | None] = Counter()
        """How many goals ended with each exit code; None: not started."""
        self.waiting = len(to_run)
        self.stopping = False
        self._tokens = 0.0
        self._cost = Cost()
        self._earlier: dict[str, GoalResult] = {}
        """Of goals to run that an earlier batch command started: what they used before their next session."""
        for result in results:
            if result.id in to_run and result.totals:
                self._earlier[result.id] = result
            if result.id not in to_run:
                self._add(result)
            if result.id not in to_run and result.status != WAITING:
                self.codes[result.code] += 1

    @property
    def ended(self) -> int:
        return self.codes.total()

    @property
    def reached(self) -> int:
        return self.codes[ExitCode.GOAL_REACHED]

    @property
    def tokens(self) -> float:
        """Of all goals, those that run included."""
        earlier = sum(each.used["tokens"] for each in self._earlier.values())
        return self._tokens + earlier + sum(each.course.used.tokens for each in self.running.values())

    @property
    def cost(self) -> Cost:
        """As `tokens`."""
        earlier = sum((each.cost for each in self._earlier.values()), self._cost)
        return sum((each.course.used.cost for each in self.running.values()), earlier)

    def _add(self, result: GoalResult) -> None:
        self._tokens += result.used["tokens"]
        self._cost += result.cost

    def started(self, run: PlannedRun) -> None:
        self.waiting -= 1
        self.running[run.id] = RunningGoal(run)

    def heard(self, goal_id: str, event: RunEvent) -> None:
        if goal_id not in self.running:
            return
        if isinstance(event, RunStarted) and not event.resumed:
            self._earlier.pop(goal_id, None)  # all its sessions are heard from the first one on
        course = self.running[goal_id].course
        if course.started is not NOT_STARTED or isinstance(event, RunStarted):
            course.apply(event)  # what precedes belongs to an earlier session

    def finish(self, result: GoalResult) -> None:
        """Count the end of a goal, also of one that is not started, or was stopped before it began."""
        if self.running.pop(result.id, None) is None:
            self.waiting -= 1
        if result.status == WAITING:
            self.waiting += 1
            return
        self._earlier.pop(result.id, None)
        self._add(result)
        self.codes[result.code] += 1
        self.last.append(result)
