"""``run.json`` of a run that workers execute, with what only the database knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from codex_multi_role.errors import BudgetUsedUp, CodexMultiRoleError, ExitCode, RunInterrupted, RunStatus, UsageError
from codex_multi_role.extensions.machines.workers.membership import KnownWorker
from codex_multi_role.extensions.machines.workers.overview import why_waiting
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, RunState
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.run_options import RunOptions

_STATUSES = {
    ExitCode.GOAL_REACHED: RunStatus.SUCCEEDED,
    ExitCode.GOAL_NOT_REACHED: RunStatus.ENDED,
    ExitCode.WAITING: RunStatus.PARKED,
    ExitCode.BUDGET_USED_UP: RunStatus.PARKED,
    ExitCode.INTERRUPTED: RunStatus.INTERRUPTED,
}
_NO_END = {"outcome": "", "reason": "", "hint": "", "exit_code": None, "ended_at": None, "resets_at": None}
_OUTCOMES = {error.exit_code: error.reason for error in (UsageError, RunInterrupted, BudgetUsedUp)}


def shared_record(run: QueuedRun, database_url: str, workers: Sequence[KnownWorker], *, is_answered: bool) -> Json:
    """The latest saved ``run.json``, with the status of the row instead of that of the process that wrote it.

    ``is_answered``: whether an answer to it has not been received yet. ``shared`` is added: ``{database, state,
    queue, worker, attempt, why, since}``. A run that was never saved has what it was submitted with.
    """
    record = dict(run.record) if run.record else _as_submitted(run)
    is_queued = run.state in (RunState.WAITING, RunState.HELD) or (run.state is RunState.PARKED and is_answered)
    shared = {
        "database": database_url,
        "state": str(run.state),
        "queue": run.queue,
        "worker": run.worker if run.state is RunState.RUNNING else None,
        "attempt": run.attempt,
        "why": "; ".join(filter(None, (run.why, why_waiting(run.queue, workers)))) if is_queued else run.why,
        "since": _moment(run.changed_at),
    }
    return {**record, **known_ending(run, record, is_queued=is_queued), SHARED: shared}


def known_ending(run: QueuedRun, record: Json, *, is_queued: bool) -> Json:
    """The fields of the record that the row knows better."""
    if is_queued or run.state is RunState.RUNNING:
        status = QUEUED if is_queued else RunStatus.RUNNING
        return {**_NO_END, "status": status}
    if record.get("exit_code") == run.exit_code and record.get("status") != RunStatus.RUNNING:
        return {}
    code = ExitCode.find(run.exit_code) or ExitCode.FAILED
    return {
        **_NO_END,
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
        "result": None,
        "files": None,
        "workspace": str(run.request.workspace.get("repository") or ""),
        "options": options,
        "totals": {},
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
