"""``run.json`` of a run that workers execute, with what only the database knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from codex_multi_role.errors import CodexMultiRoleError, ExitCode, RunInterrupted, RunStatus, UsageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.run_options import RunOptions
from codex_multi_role.workers.membership import KnownWorker
from codex_multi_role.workers.overview import why_waiting
from codex_multi_role.workers.queued_runs import QueuedRun, RunState

_STATUSES = {
    ExitCode.GOAL_REACHED: RunStatus.SUCCEEDED,
    ExitCode.GOAL_NOT_REACHED: RunStatus.ENDED,
    ExitCode.WAITING: RunStatus.PARKED,
    ExitCode.BUDGET_USED_UP: RunStatus.PARKED,
    ExitCode.INTERRUPTED: RunStatus.INTERRUPTED,
}
_OUTCOMES = {ExitCode.WRONG_USAGE: UsageError.reason, ExitCode.INTERRUPTED: RunInterrupted.reason}


def shared_record(run: QueuedRun, workers: Sequence[KnownWorker]) -> Json:
    """The latest saved ``run.json``, with the status of the row instead of that of the process that wrote it.

    ``shared`` is added: ``{state, queue, worker, attempt, why, since}``. A run that was never saved has what it was
    submitted with.
    """
    record = dict(run.record) if run.record else _as_submitted(run)
    shared = {
        "state": str(run.state),
        "queue": run.queue,
        "worker": run.worker if run.state is RunState.RUNNING else None,
        "attempt": run.attempt,
        "why": _why(run, workers),
        "since": _moment(run.changed_at),
    }
    return {**record, **_ending(run, record), SHARED: shared}


def _why(run: QueuedRun, workers: Sequence[KnownWorker]) -> str:
    if run.state is not RunState.WAITING:
        return run.why
    return "; ".join(filter(None, (run.why, why_waiting(run.queue, workers))))


def _ending(run: QueuedRun, record: Json) -> Json:
    """The fields of the record that the row knows better."""
    if run.state in (RunState.WAITING, RunState.HELD):
        return {"status": RunStatus.QUEUED, "outcome": "", "reason": "", "exit_code": None, "ended_at": None}
    if run.state is RunState.RUNNING:
        return {"status": RunStatus.RUNNING, "outcome": "", "reason": "", "exit_code": None, "ended_at": None}
    if record.get("exit_code") == run.exit_code and record.get("status") != RunStatus.RUNNING:
        return {}
    code = ExitCode.find(run.exit_code) or ExitCode.FAILED
    return {
        "status": _STATUSES.get(code, RunStatus.FAILED),
        "outcome": _OUTCOMES.get(code, CodexMultiRoleError.reason),
        "reason": run.why,
        "exit_code": int(code),
        "ended_at": _moment(run.changed_at),
    }


def _as_submitted(run: QueuedRun) -> Json:
    options = RunOptions.from_record({**RunOptions().as_record(), **run.request.options}).as_record()
    return {
        "run_id": run.run_id,
        "goal": run.goal,
        "flow": options["flow"],
        "inputs": options["inputs"],
        "forked_from": None,
        "started_at": _moment(run.submitted_at),
        "resumed_at": [],
        "resets_at": None,
        "result": None,
        "files": None,
        "workspace": str(run.request.workspace.get("repository") or ""),
        "options": options,
        "totals": {},
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
