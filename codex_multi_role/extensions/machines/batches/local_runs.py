"""Runs the goals of a batch on this machine, each in a process with its own session."""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.batches.batch_folder import BatchFolder
from codex_multi_role.extensions.machines.batches.batch_runs import result_without_run
from codex_multi_role.extensions.machines.batches.goal_results import GoalResult, News, is_finished, recorded_result
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.extensions.machines.batches.run_process import Order
from codex_multi_role.extensions.machines.workers.own_process import STOP_SECONDS, OwnProcess
from codex_multi_role.host.own_python import last_output, own_module
from codex_multi_role.host.programs import exclude_from_path
from codex_multi_role.presentation.wording import one_line
from codex_multi_role.reading.json_files import read_object, read_records
from codex_multi_role.run_folder import RunEvent, RunFolder, event_of

NOT_CHANGED = frozenset(
    {"goal", "run_id", "runs_dir", "flow", "database_url", "record", "workspace", "worktree", "branch"}
)
"""Options that a run keeps when it is resumed."""


class GoalProcess(OwnProcess):
    """A process that works on ``run``. ``log``: what it prints, except for the run's events."""

    def __init__(self, run: PlannedRun, order: Order, log: Path) -> None:
        self.run, self.log = run, log
        super().__init__(own_module(Order.__module__, run.run_id), asdict(order), log)

    def events(self, lines: Iterable[bytes]) -> Iterator[tuple[str, RunEvent]]:
        return ((self.run.id, event_of(record)) for record in read_records(lines))


class LocalRuns:
    """The processes of the runs of one batch. Only one thread uses it."""

    def __init__(self, folder: BatchFolder) -> None:
        self._folder = folder
        self._children: dict[str, GoalProcess] = {}
        self._kill_at: float | None = None

    def takers(self, _planned: Sequence[PlannedRun]) -> str:
        return ""

    def exists(self, run: PlannedRun) -> bool:
        """Whether it has a folder; a process that was killed early leaves one without a ``run.json``."""
        return self._folder_of(run).path.exists()

    def record(self, run: PlannedRun) -> Mapping[str, Any]:
        """Its ``run.json``; empty if it has none."""
        return read_object(self._folder_of(run).record_path)

    def recorded(self, run: PlannedRun) -> GoalResult | None:
        return recorded_result(run.id, run.goal.number, self._folder_of(run))

    def is_finished(self, run: PlannedRun) -> bool:
        return is_finished(self._folder_of(run))

    def _folder_of(self, run: PlannedRun) -> RunFolder:
        return RunFolder(self._folder.runs_dir / run.run_id)

    def start(self, run: PlannedRun) -> bool:
        """Start the run, or resume it if it has a ``run.json``; True. Raises `StorageError`."""
        exclude_from_path(run.options.place.workspace)
        log = self._folder.output_path / f"{run.run_id}.log"
        self._children[run.id] = GoalProcess(run, self._order(run), log)
        return True

    def news(self, seconds: float) -> Iterator[tuple[str, News]]:
        """What happened since the last call, by goal ID; waits at most ``seconds`` for something."""
        for child in self._readable(seconds):
            yield from child.events(child.lines())
        for child in list(self._children.values()):
            if child.exit_code is not None:
                del self._children[child.run.id]
                yield from child.events(child.close())
                yield child.run.id, self._result(child)
        if self._kill_at is not None and time.monotonic() > self._kill_at:
            self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask all runs to stop, so that they can be resumed."""
        self._kill_at = time.monotonic() + STOP_SECONDS
        for child in self._children.values():
            child.stop()

    def hurry(self) -> None:
        """Kill what the runs have started, so that they stop sooner."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children.values():
            child.send(number)

    def _readable(self, seconds: float) -> list[GoalProcess]:
        with selectors.DefaultSelector() as selector:
            for child in self._children.values():
                if not child.is_silent:
                    selector.register(child, selectors.EVENT_READ, child)
            return [key.data for key, _ in selector.select(seconds)]

    def _order(self, run: PlannedRun) -> Order:
        options = run.options.as_record()
        recorded = self.record(run).get("options", {})
        changed = (name for name in sorted(run.given - NOT_CHANGED) if recorded.get(name) != options.get(name))
        return Order(
            options=options,
            resumes=bool(recorded),
            changes=tuple(changed),
            members=str(self._folder.members_path),
            repository=run.repository,
            ref=run.goal.line.ref,
            mirrors=str(self._folder.repositories_path),
        )

    def _result(self, child: GoalProcess) -> GoalResult:
        run, code = child.run, child.exit_code
        if not (printed := last_output(child.log)):
            child.log.unlink(missing_ok=True)
        recorded = self.recorded(run)
        if recorded is not None and code == ExitCode.WRONG_USAGE != recorded.exit_code:  # it was not resumed
            return replace(recorded, status=RunStatus.FAILED, exit_code=code, reason=_error_in(printed))
        if recorded is not None:
            return recorded
        if code == ExitCode.INTERRUPTED or self._kill_at is not None:
            return result_without_run(run)  # it was stopped before it began
        known = ExitCode.find(code) or ExitCode.FAILED
        reason = _error_in(printed) or f"its process ended with exit code {code}"
        return replace(result_without_run(run), status=RunStatus.FAILED, exit_code=known, reason=reason)


def _error_in(printed: str) -> str:
    errors = [line.removeprefix("error: ") for line in printed.splitlines() if line.startswith("error: ")]
    return one_line("; ".join(errors), 500)
