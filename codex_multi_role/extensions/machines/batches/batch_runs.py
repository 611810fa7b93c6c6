"""Works through the runs of a batch. Who runs a goal, and who watches, are behind two small protocols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from codex_multi_role.errors import ExitCode, QuotaUsedUp, RunStatus
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, WAITING, GoalResult, News, ResultFile
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.extensions.machines.batches.schedule import (
    AMOUNTS,
    NO_QUOTA,
    TOTAL_BUDGET,
    Bounds,
    Refusal,
    Schedule,
)
from codex_multi_role.run_folder import RunEvent

LOOK_SECONDS = 0.25


class Runs(Protocol):
    """Who runs the goals: processes of this machine, or workers anywhere."""

    def takers(self, planned: Sequence[PlannedRun]) -> str:
        """Which workers can take these runs now, in words; empty if this process runs them."""

    def exists(self, run: PlannedRun) -> bool:
        """Whether anything is left of an earlier start."""

    def record(self, run: PlannedRun) -> Mapping[str, Any]:
        """The ``run.json`` of an earlier process; empty if the run does not exist."""

    def recorded(self, run: PlannedRun) -> GoalResult | None:
        """What is known of a run from before; None if it does not exist."""

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether the run reached an end that `resume` does not continue."""

    def start(self, run: PlannedRun) -> bool:
        """Start or resume a run, whose end is news; False if it waits now, and its first event says that it started."""

    def news(self, seconds: float) -> Iterable[tuple[str, News]]:
        """What happened since the last call, by goal ID; waits at most ``seconds`` for something."""

    def stop(self) -> None:
        """Ask all runs to stop, so that they can be resumed, or leave them to others."""

    def hurry(self) -> None:
        """Stop sooner."""


class Watcher(Protocol):
    """Shows what happens. ``look`` is called again and again."""

    def started(self, run: PlannedRun) -> None: ...

    def heard(self, goal_id: str, event: RunEvent) -> None: ...

    def ended(self, result: GoalResult) -> None: ...

    def stopping(self) -> None: ...


class BatchStop(Protocol):
    """``asked``: whether a person or the system asked this process to stop. `announce`: all runs know of it."""

    asked: bool

    def announce(self) -> None: ...


@dataclass
class BatchRuns:
    """The planned runs of a batch, what is known of each, and which of them are still to be run."""

    planned: Sequence[PlannedRun]
    results: dict[str, GoalResult] = field(default_factory=dict)

    @classmethod
    def of(cls, planned: Sequence[PlannedRun], runs: Runs) -> BatchRuns:
        """With what is known of the runs of an earlier process."""
        return cls(planned, {run.id: runs.recorded(run) or result_without_run(run) for run in planned})

    def unfinished(self, runs: Runs) -> list[PlannedRun]:
        """The runs that were not started, or that `resume` continues."""
        return [run for run in self.planned if not runs.is_finished(run)]

    def schedule(self, todo: Iterable[PlannedRun], bounds: Bounds) -> Schedule:
        """When ``todo`` may start, with what all runs have used so far."""
        entries = [replace(run.entry, used=self.results[run.id].used) for run in todo]
        used = [result.used for result in self.results.values()]
        return Schedule(entries, bounds, {name: sum(each[name] for each in used) for name in AMOUNTS})


def result_without_run(run: PlannedRun) -> GoalResult:
    """That of a goal of which no run is known."""
    place, workspace = str(run.options.place.runs_dir / run.run_id), str(run.options.place.workspace)
    return GoalResult(run.id, run.goal.number, run.run_id, place, WAITING, workspace=workspace)


class BatchWork:
    """Runs what is left of a batch; ``batch.results`` and the result file are always up to date."""

    def __init__(
        self,
        batch: BatchRuns,
        todo: Sequence[PlannedRun],
        bounds: Bounds,
        runs: Runs,
        file: ResultFile,
        watcher: Watcher,
    ) -> None:
        self._results = batch.results
        self._todo = {run.id: run for run in todo}
        self._schedule = batch.schedule(todo, bounds)
        self._runs = runs
        self._queued: set[str] = set()
        self._file = file
        self._watcher = watcher

    def work(self, stop: BatchStop) -> None:
        """Work until all goals have ended, or until a stop is asked for and those that run have stopped.

        Raises `StorageError`.
        """
        stopping = False
        self._file.write()
        while True:  # waits: for goals, ended when none waits or runs, or by a person
            if stop.asked and not stopping:
                stopping = True
                self._runs.stop()
                stop.announce()
                self._watcher.stopping()
            if not stopping:
                self._start_goals()
            if not self._schedule.running:
                break
            for goal_id, news in self._runs.news(LOOK_SECONDS):
                self._take(goal_id, news)
            self._file.tick()
        self._file.write()

    def _start_goals(self) -> None:
        while (goal_id := self._schedule.start_next()) is not None:
            run, result = self._todo[goal_id], self._results[goal_id]
            if self._runs.start(run):
                self._start(run)
            else:
                self._queued.add(goal_id)
                self._update(replace(result, status=WAITING, outcome="", exit_code=None, reason=""))
        for refused in _refused(self._schedule.take_dropped(), self._results):
            self._update(refused)
            self._watcher.ended(refused)

    def _start(self, run: PlannedRun) -> None:
        result = self._results[run.id]
        self._update(replace(result, status=RunStatus.RUNNING, outcome="", exit_code=None, reason=""))
        self._watcher.started(run)

    def _take(self, goal_id: str, news: News) -> None:
        if not isinstance(news, GoalResult):
            if goal_id in self._queued:
                self._queued.remove(goal_id)
                self._start(self._todo[goal_id])
            self._watcher.heard(goal_id, news)
            return
        self._schedule.end(goal_id, news.used, failed=news.has_failed)
        self._update(news)
        self._watcher.ended(news)
        if news.outcome == QuotaUsedUp.reason:  # each further run would only be refused, and parked
            self._schedule.refuse_rest(Refusal(NO_QUOTA, f"not started, like goal {goal_id}: {news.reason}"))

    def _update(self, result: GoalResult) -> None:
        self._results[result.id] = result
        self._file.put(result)


def _refused(refusals: Mapping[str, Refusal], results: Mapping[str, GoalResult]) -> Iterator[GoalResult]:
    """The results of goals that will not start. One with a run keeps its status and reason: it can be resumed."""
    for goal_id, why in refusals.items():
        result = results[goal_id]
        status = NOT_STARTED if result.status == WAITING else result.status
        code = ExitCode.BUDGET_USED_UP if why.outcome in (TOTAL_BUDGET, NO_QUOTA) else result.exit_code
        reason = f"{why.reason} (before: {result.reason})" if result.reason else why.reason
        yield replace(result, status=status, outcome=why.outcome, exit_code=code, reason=reason)
