"""The runs of a batch in a database: submitted at once, executed by workers anywhere, watched from here."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.batches.goal_results import NOT_STARTED, WAITING, GoalResult, News, result_of
from codex_multi_role.extensions.machines.batches.planned_runs import PlannedRun
from codex_multi_role.extensions.machines.batches.schedule import TOTAL_BUDGET
from codex_multi_role.extensions.machines.journal.database_url import place_of
from codex_multi_role.extensions.machines.store.workspace_sources import WorkspaceSource
from codex_multi_role.extensions.machines.workers.batch_totals import record_batch
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import runs
from codex_multi_role.extensions.machines.workers.membership import list_workers
from codex_multi_role.extensions.machines.workers.queued_runs import OVER, QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest, can_take, queue_with_labels
from codex_multi_role.extensions.machines.workers.shared_record import known_ending
from codex_multi_role.extensions.machines.workers.submission import Submitter
from codex_multi_role.presentation.wording import plural
from codex_multi_role.run_folder import event_of
from codex_multi_role.run_folder.folder import command_line

OVERLAP_SECONDS = 1.0
"""Rows that were committed late are seen again."""
BEFORE_EXECUTION = (RunState.WAITING, RunState.HELD)


@dataclass(frozen=True)
class BatchQueue:
    """Where the runs of a batch wait: its name, the queue, and the totals they share."""

    batch: str
    queue: str
    totals: Mapping[str, float]


class SubmittedRuns:
    """Who runs the goals of a batch if not processes of this machine. Only one thread uses it."""

    def __init__(self, database: Database, submitter: Submitter, place: BatchQueue) -> None:
        self._database = database
        self._queued = QueuedRuns(database)
        self._submitter = submitter
        self._place = place
        self._rows = {row.run_id: row for row in self._queued.list(runs.c.batch == place.batch)}
        self._watched: dict[str, PlannedRun] = {}
        self._executing: set[str] = set()
        self._to_submit: list[RunRequest] = []
        self._to_resume: list[QueuedRun] = []
        self._since = 0.0
        self._is_left = False

    def close(self) -> None:
        self._queued.close()

    def takers(self, planned: Sequence[PlannedRun]) -> str:
        """Who can take these runs now, in words."""
        alive = [each for each in list_workers(self._database) if not each.is_dead]
        known = {run.run_id: self._rows[run.run_id].queue for run in planned if run.run_id in self._rows}
        new = [run.goal.line.labels for run in planned if run.run_id not in known]
        wanted = {*known.values(), *(queue_with_labels(self._place.queue, labels) for labels in new)}
        for name in sorted(wanted):
            if not any(can_take(name, each.queues, each.labels) for each in alive):
                start = command_line("worker", place=place_of(self._database.url))
                return f"no worker takes runs of the queue {name} now; start one with `{start}`"
        return f"{plural(len(alive), 'worker')} with {plural(sum(each.concurrency for each in alive), 'place')}"

    def exists(self, run: PlannedRun) -> bool:
        return run.run_id in self._rows

    def record(self, run: PlannedRun) -> Mapping[str, Any]:
        """The latest ``run.json``, or as much of it as is known before the run starts; empty if it is unknown."""
        row = self._rows.get(run.run_id)
        if row is None:
            return {}
        options = row.request.options
        return {"options": options, "goal": row.goal, "flow": options["flow"], **(row.record or {})}

    def recorded(self, run: PlannedRun) -> GoalResult | None:
        row = self._rows.get(run.run_id)
        return _result(run, row) if row else None

    def is_finished(self, run: PlannedRun) -> bool:
        row = self._rows.get(run.run_id)
        return row is not None and row.state is RunState.ENDED and not _is_resumable(row)

    def start(self, run: PlannedRun) -> bool:
        """With the next `news`, submit the run, or enqueue it again if it can be resumed; then watch it. False."""
        self._watched[run.run_id] = run
        row = self._rows.get(run.run_id)
        if row is None:
            self._to_submit.append(self._request(run))
        elif row.state is RunState.PARKED or (row.state is RunState.ENDED and _is_resumable(row)):
            self._to_resume.append(row)
        return False

    def news(self, seconds: float) -> Iterator[tuple[str, News]]:
        """What happened since the last call, by goal ID; looks after ``seconds``."""
        self._submit()
        time.sleep(seconds)
        changed = self._queued.list(runs.c.batch == self._place.batch, runs.c.changed_at > self._since)
        self._since = max([self._since, *(row.changed_at - OVERLAP_SECONDS for row in changed)])
        for row in changed:
            self._rows[row.run_id] = row
            yield from self._news_of(row)
        if self._is_left:
            yield from [(run.id, self._end(run, self._rows[run_id])) for run_id, run in list(self._watched.items())]
        elif self._all_are_held():
            yield from self._withdraw_held()

    def stop(self) -> None:
        """Watch no longer. The workers continue the runs."""
        self._is_left = True

    def hurry(self) -> None:
        """Nothing in this process can be hurried."""

    def _news_of(self, row: QueuedRun) -> Iterator[tuple[str, News]]:
        run = self._watched.get(row.run_id)
        if run is None:
            return
        if row.state is RunState.RUNNING and row.record and row.run_id not in self._executing:
            self._executing.add(row.run_id)
            yield run.id, event_of(_as_started(row))
        if row.state in (RunState.ENDED, RunState.PARKED):
            yield run.id, self._end(run, row)

    def _all_are_held(self) -> bool:
        """Whether nothing of the batch runs, or may start, that could leave a part of the totals to what is held."""
        left = [row for row in self._rows.values() if row.state not in OVER]
        return bool(left) and all(row.state is RunState.HELD and row.resumes_at is None for row in left)

    def _withdraw_held(self) -> Iterator[tuple[str, News]]:
        """Take what the totals do not allow from the workers, unless there is a run that they may start."""
        held = {run_id: row for run_id, row in self._rows.items() if run_id in self._watched}
        if any(self._queued.fits(row) for row in held.values()):
            return
        for run_id, row in held.items():
            if self._queued.withdraw(row, row.why, ExitCode.BUDGET_USED_UP):
                run = self._watched[run_id]
                status = RunStatus.PARKED if row.manifest else NOT_STARTED
                result = replace(self._end(run, row), status=status, outcome=TOTAL_BUDGET)
                yield run.id, replace(result, exit_code=ExitCode.BUDGET_USED_UP)

    def _end(self, run: PlannedRun, row: QueuedRun) -> GoalResult:
        del self._watched[run.run_id]
        return _result(run, row)

    def _submit(self) -> None:
        """First the totals, which may have changed since the batch was left: a worker compares at once."""
        if self._since and not self._to_submit and not self._to_resume:
            return
        with self._database.transaction() as connection:
            record_batch(connection, self._place.batch, self._place.totals)
        self._queued.submit(self._to_submit)
        self._to_submit.clear()
        for row in self._to_resume:
            self._queued.enqueue_again(row, "its batch is resumed")
        self._to_resume.clear()

    def _request(self, run: PlannedRun) -> RunRequest:
        """Raises what loading the definitions of the run raises."""
        place: dict[str, Any] = {
            "batch": self._place.batch,
            "line": run.goal.number,
            "queue": self._place.queue,
            "labels": tuple(run.goal.line.labels),
            "priority": run.goal.line.priority,
        }
        options = run.options.changed(worktree=False, branch=None)
        if not run.repository:
            return self._submitter.request(options, **place)
        source = WorkspaceSource(repository=run.repository, ref=run.goal.line.ref or "")
        with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as empty:
            return self._submitter.request(options.changed(workspace=Path(empty)), repository=source, **place)


def _is_resumable(row: QueuedRun) -> bool:
    code = ExitCode.find(row.exit_code)
    return code is not None and code.is_resumable


def _as_started(row: QueuedRun) -> dict[str, Any]:
    """The event that its process wrote when it started the run, as far as the views need it."""
    record = row.record or {}
    known = {"run_id": row.run_id, "goal": row.goal, "flow": record.get("flow", ""), "at": record.get("started_at", "")}
    return {"type": "run_started", **known, "cycles": 0, "roles": [], "workspace": "", "folder": "", "playbook": None,
            "resumed": row.attempt > 1}  # fmt: skip


def _result(run: PlannedRun, row: QueuedRun) -> GoalResult:
    is_queued = row.state in BEFORE_EXECUTION
    record = row.record or {}
    record = {**record, **known_ending(row, record, is_queued=is_queued)}
    names = {"id": run.id, "line": run.goal.number, "run_id": row.run_id, "folder": ""}
    place = run.repository or str(run.options.place.workspace)
    status = WAITING if is_queued else record["status"]
    return result_of(record, **names, status=status, reason=row.why, workspace=place)
