"""What people decide about the runs of workers, from any machine: answer, cancel, resume."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codex_multi_role.errors import DefinitionError, ExitCode, RunBusy, UsageError
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers.messages import (
    PAUSE,
    STOP,
    forget_stops,
    send,
    send_answer,
    send_cancellation,
)
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRun, RunState
from codex_multi_role.extensions.machines.workers.run_requests import RunRequest
from codex_multi_role.extensions.machines.workers.shared_runs import SharedRuns
from codex_multi_role.extensions.machines.workers.submission import (
    require_no_secret,
    require_portable,
    unpack_definitions,
)
from codex_multi_role.lifecycle.definitions import load_for_another_machine
from codex_multi_role.run_folder import Answer, Question, Questions
from codex_multi_role.run_folder.events import now
from codex_multi_role.run_folder.items import Cancellation, find_open_task
from codex_multi_role.run_folder.typed_answers import user_name
from codex_multi_role.run_options import RunOptions

STOP_SECONDS = 90.0
"""How long a run process has to notice that it must stop, interrupt its turns and save its state."""
LOOK_SECONDS = 0.5
ATTEMPTS = 3


def answer_shared(
    shared: SharedRuns,
    run: QueuedRun,
    *,
    approved: bool,
    comment: str,
    question: str | None,
    values: Mapping[str, object] | None = None,
) -> Question:
    """Answer a question of the run: the one with that key, or the only open one; returns it with its answer.

    Raises `UsageError`, `StorageError`.
    """
    require_no_secret({"comment": comment, **(values or {})})
    folder = shared.mirror(run)
    answer = Answer(approved, comment, values=dict(values or {}))
    shared.mirrors.forget(run.run_id)  # the copy gets the answer even if the database does not
    answered = Questions(folder.path).answer(question, answer)
    send_answer(shared.database, run.run_id, answered.key, answered.answer or answer)
    return answered


def cancel_shared_task(shared: SharedRuns, run: QueuedRun, task: str, comment: str) -> str:
    """Cancel one task of the run; returns its unit. Raises `UsageError`, `StorageError`."""
    require_no_secret({"comment": comment})
    unit = find_open_task(shared.mirror(run), task)
    send_cancellation(shared.database, run.run_id, unit, Cancellation(user_name(), comment, now()))
    return unit


def cancel_shared(shared: SharedRuns, run: QueuedRun, is_ending: Callable[[], bool] = lambda: False) -> None:
    """Stop the run where a worker works on it, or take it out of its queue; either way, it can be resumed.

    Nothing is left to do if it has ended. ``is_ending`` ends the wait for its process. Raises `RunBusy` if that does
    not stop within `STOP_SECONDS`, `StorageError`.
    """
    for _ in range(ATTEMPTS):
        if run.state is RunState.ENDED:
            return None
        if run.state is RunState.RUNNING:
            send(shared.database, run.run_id, STOP)
            return _await_stop(shared, run, is_ending)
        if shared.queued.withdraw(run, f"cancelled by {user_name()}"):
            return None
        run = shared.row(run.run_id)  # a worker was faster
    raise RunBusy(f"run {run.run_id} changes its state again and again", "Try again.")


def pause_shared(shared: SharedRuns, run: QueuedRun) -> bool:
    """Let the run park once the turns at work have ended; False if it is parked already.

    Raises `UsageError` if no worker works on it.
    """
    if run.state is RunState.PARKED:
        return False
    if run.state is not RunState.RUNNING:
        raise UsageError(f"run {run.run_id} is not running (state: {run.state.value}); nothing to pause")
    send(shared.database, run.run_id, PAUSE)
    return True


def _await_stop(shared: SharedRuns, run: QueuedRun, is_ending: Callable[[], bool]) -> None:
    end = time.monotonic() + STOP_SECONDS
    while shared.row(run.run_id).state is RunState.RUNNING:
        if time.monotonic() > end or is_ending():
            hint = f"It has been asked to stop. `{shared.command('queues')}` shows whether that worker is alive."
            raise RunBusy(f"the worker {run.worker} has not stopped run {run.run_id} yet", hint)
        time.sleep(LOOK_SECONDS)


def resume_shared(shared: SharedRuns, run: QueuedRun, changes: Mapping[str, Any]) -> bool:
    """Enqueue a run that is parked or has ended, with some of its options changed; False if it has nothing left to do.

    Raises `RunBusy` if it is in a queue or a worker works on it, `UsageError` for changes that workers cannot make,
    `StorageError`.
    """
    if run.state in (RunState.RUNNING, RunState.WAITING, RunState.HELD):
        raise _busy(shared, run)
    code = ExitCode.find(run.exit_code)
    if code is not None and not code.is_resumable and not changes:
        return False
    require_portable(changes)
    options = {**run.request.options, **run.request.changes, **changes}
    if options.get("max_cost") is not None:
        _require_prices(shared.store, run.request, options)
    forget_stops(shared.database, run.run_id)
    shared.queued.change(run, changes)
    if not shared.queued.enqueue_again(run, "resumed"):
        raise _busy(shared, shared.row(run.run_id))
    return True


def _require_prices(store: Store, request: RunRequest, options: Mapping[str, Any]) -> None:
    """Raise `UsageError` if a model has no price for the maximum cost in ``options``: no worker could start the run."""
    with tempfile.TemporaryDirectory(prefix="codex-multi-role-") as scratch:
        folder = Path(scratch)
        catalog, playbook = unpack_definitions(request.definitions, store, folder)
        places = {"roles": catalog, "playbook": playbook and str(playbook), "workspace": folder, "runs_dir": folder}
        try:
            load_for_another_machine(RunOptions.from_record({**options, **places})).require_prices()
        except DefinitionError as error:
            raise UsageError(
                f"run {request.run_id}: {str(error).replace(f'{folder}/', '')}",
                "A run on workers keeps the price list it was submitted with. Use --max-tokens, or submit the goal "
                "again with --prices FILE.",
            ) from error


def _busy(shared: SharedRuns, run: QueuedRun) -> RunBusy:
    watch, cancel = (shared.command(verb, run.run_id) for verb in ("watch", "cancel"))
    follow = f"`{watch}` shows it, `{cancel}` stops it."
    if run.state is RunState.RUNNING:
        return RunBusy(f"the worker {run.worker} is working on run {run.run_id} (attempt {run.attempt})", follow)
    return RunBusy(f"run {run.run_id} is in the queue {run.queue} already", follow)
