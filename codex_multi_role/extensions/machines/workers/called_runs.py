"""The runs that workers execute for items of a run: each walks the flow that an item calls."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import sqlalchemy as sa

from codex_multi_role.errors import ExitCode
from codex_multi_role.extensions.machines.store import Store, fetch_file, fetch_snapshots
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.database_tables import messages
from codex_multi_role.extensions.machines.workers.messages import send_stop, withdraw_stop
from codex_multi_role.extensions.machines.workers.placed_calls import PlacedCall, PlacedRun, enclosing_units
from codex_multi_role.extensions.machines.workers.queued_runs import OVER, QueuedRun, QueuedRuns, RunState
from codex_multi_role.extensions.machines.workers.submission import require_no_secret
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Cancellations, RunFolder
from codex_multi_role.run_folder.cost import as_number
from codex_multi_role.run_folder.placed_runs import record_spent
from codex_multi_role.steps.budget import Limits
from codex_multi_role.steps.placing import CALL_FILE
from codex_multi_role.workspace import Snapshots

LOOK_SECONDS = 0.5


class CalledRuns:
    """The runs called by ``parent``, whose folder is ``folder``. ``report`` gets ``waits``, as the worker does.

    ``manifest``: the latest saved state of the parent.
    """

    def __init__(
        self,
        database: Database,
        queued: QueuedRuns,
        store: Store,
        parent: QueuedRun,
        folder: RunFolder,
        report: Callable[..., None],
    ) -> None:
        self._database, self._queued, self._store = database, queued, store
        self._parent, self._folder, self._report = parent, folder, report
        self.manifest = parent.manifest or ""
        self._lock = threading.Lock()
        self._known: Mapping[str, QueuedRun] = {}
        self._looked = -LOOK_SECONDS
        self._waiting = 0

    def submit(self, call: PlacedCall) -> None:
        require_no_secret({"goal": call.goal, "inputs": call.inputs})
        own = self._parent.request
        options = {
            **own.options, **own.changes, **_as_options(call.limits),
            "flow": call.flow, "goal": call.goal, "inputs": dict(call.inputs), "cycles": call.cycles,
        }  # fmt: skip
        request = replace(
            own,
            run_id=call.run_id,
            options=options,
            batch=None,  # what it uses counts as the parent's
            line=None,
            changes={},
            parent=self._parent.run_id,
            unit=call.unit,
            start={"manifest": self.manifest, "tree": call.tree} if call.tree else own.start,
        )
        self._database.patiently(lambda: self._queued.submit([request]))
        self._looked = -LOOK_SECONDS

    def find(self, run_id: str) -> PlacedRun | None:
        found = self._current().get(run_id)
        return _as_placed(found) if found else None

    def resume(self, run_id: str, limits: Limits) -> None:
        run = self._current()[run_id]
        withdraw_stop(self._database, run_id)
        self._queued.change(run, _as_options(limits))
        self._queued.enqueue_again(run, "")
        self._looked = -LOOK_SECONDS

    def outcome(self, run_id: str, copy: Snapshots | None) -> Json | None:
        run = self._current()[run_id]
        if run.state is not RunState.ENDED or not run.manifest:
            return None
        content = fetch_file(self._store, run.manifest, CALL_FILE)
        if content is None:
            return None
        if copy is not None:
            known = run.request.start.get("manifest", "")
            tree = fetch_snapshots(self._store, run.manifest, copy.repository().git_dir, known)
            if tree:
                copy.fill(tree)
        outcome: Json = json.loads(content)
        return outcome

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._waiting += change
            self._report(waits="yes" if self._waiting else "")

    def stop_cancelled(self) -> None:
        """Stop the runs of items that were cancelled, in this process or before it. Raises `StorageError`."""
        cancellations = Cancellations(self._folder.path)
        if not cancellations.any():
            return
        for run in self._current().values():
            if run.state is not RunState.ENDED and any(map(cancellations.find, enclosing_units(run.request.unit))):
                stop_run(self._database, self._queued, run, "its item was cancelled")

    @property
    def parked(self) -> str | None:
        """One of those that are parked, as far as known."""
        return next((run_id for run_id, run in self._known.items() if run.state is RunState.PARKED), None)

    def _current(self) -> Mapping[str, QueuedRun]:
        """The runs by ID, at most `LOOK_SECONDS` old. What those that are over have spent is recorded."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_SECONDS:
                self._known = {run.run_id: run for run in self._queued.called_by(self._parent.run_id)}
                self._looked = time.monotonic()
                for run in self._known.values():
                    if run.state in OVER:
                        record_spent(self._folder.path, run.run_id, (run.record or {}).get("totals", {}))
            return self._known


def stop_run(database: Database, queued: QueuedRuns, run: QueuedRun, why: str) -> bool:
    """Stop a run, wherever it is; whether that was not known yet. Raises `StorageError`."""
    if run.state is not RunState.RUNNING:
        return queued.withdraw(run, why)
    sent = sa.select(messages.c.number).where(messages.c.run_id == run.run_id, messages.c.kind == "stop")
    with database.transaction() as connection:
        is_known = connection.execute(sent).first() is not None
    if not is_known:
        send_stop(database, run.run_id)
    return not is_known


def _as_options(limits: Limits) -> dict[str, object]:
    limited = {"max_turns": limits.turns, "max_tokens": limits.tokens, "max_seconds": limits.seconds}
    return {**limited, "max_cost": as_number(limits.cost)}


def _as_placed(run: QueuedRun) -> PlacedRun:
    now, record = {**run.request.options, **run.request.changes}, run.record or {}
    return PlacedRun(
        is_active=run.state is RunState.RUNNING,
        ending=ExitCode(run.exit_code) if run.state in OVER and run.exit_code is not None else None,
        outcome=record.get("outcome") or "",
        reason=run.why,
        resets_at=record.get("resets_at") or "",
        limits=Limits(now.get("max_turns"), now.get("max_tokens"), now.get("max_seconds"), _cost(now.get("max_cost"))),
        totals=record.get("totals") or {},
    )


def _cost(recorded: float | None) -> Decimal | None:
    return None if recorded is None else Decimal(str(recorded))
