"""A called flow that a worker walks as a run of its own: submit it, wait for it, take its outcome.

The run's ID follows from the unit's key, so that a run that is repeated after a kill finds the same one.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from codex_multi_role.errors import (
    BudgetUsedUp,
    ExitCode,
    QuotaUsedUp,
    ReviewWaiting,
    RoleFailed,
    RunInterrupted,
    StorageError,
)
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import Cancellations
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.events import PlacedRunEnded
from codex_multi_role.steps import RunResources, StepOutcome, Unit
from codex_multi_role.steps.budget import Limits

if TYPE_CHECKING:
    from codex_multi_role.extensions.machines.workers.called_runs import CalledRuns

LOOK_SECONDS = 0.5
CANCEL_SECONDS = 60.0
"""How long a cancelled item waits for its run to stop."""
MAX_ID = 100
RETRIED = (ExitCode.WRONG_USAGE, ExitCode.FAILED, ExitCode.INTERRUPTED)
"""A run that ended so is continued when the run that called it is resumed."""


def placed_id(parent: str, unit: str, place: int) -> str:
    """The ID of the run for a unit; ``place``: of the attempt in the journal, 0 for the only one."""
    plain = f"{parent}.{unit}{f'.{place}' if place else ''}"
    if len(plain) <= MAX_ID and "/" not in plain:
        return plain
    digest = hashlib.sha256(plain.encode()).hexdigest()[:12]
    return f"{re.sub('[^A-Za-z0-9_.-]', '_', plain)[: MAX_ID - 13]}.{digest}"


@dataclass(frozen=True)
class PlacedCall:
    """A called flow to be walked as the run ``run_id``, from the workspace's snapshot ``tree``.

    ``unit``: the key of the calling item.
    """

    run_id: str
    unit: str
    flow: str
    goal: str
    inputs: Mapping[str, Any]
    cycles: int
    tree: str
    limits: Limits


@dataclass(frozen=True)
class PlacedRun:
    """Such a run as it is now. ``is_active``: a process works on it; ``ending``: None until it ended or was parked."""

    is_active: bool = False
    ending: ExitCode | None = None
    outcome: str = ""
    reason: str = ""
    resets_at: str = ""
    limits: Limits = field(default_factory=Limits)
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Placer:
    """Lets workers walk called flows as the runs ``called``; a `steps.placing.CallPlacer`."""

    called: CalledRuns

    def submit(self, run: RunResources, unit: Unit, inputs: Mapping[str, Any], number: int) -> str:
        return PlacedUnit(run, unit, self.called).submit(inputs, number)

    def outcome(self, run: RunResources, unit: Unit, run_id: str) -> Json:
        return PlacedUnit(run, unit, self.called).outcome(run_id)


class PlacedUnit:
    """One item's call of a flow on workers."""

    def __init__(self, run: RunResources, unit: Unit, called: CalledRuns) -> None:
        self._run, self._unit, self._called = run, unit, called
        self._budget, self._clock = run.services.budget, run.services.clock
        self._stopping = run.progress.stopping

    def submit(self, inputs: Mapping[str, Any], number: int) -> str:
        services, unit = self._run.services, self._unit
        run_id = placed_id(services.folder.run_id, unit.key, number if unit.step.retry else 0)
        if self._called.find(run_id) is None:
            limits, tree = self._reserved(run_id), self._tree()
            services.save()  # the other machine gets the tree from there
            self._called.submit(
                PlacedCall(
                    run_id, unit.key, unit.step.call or "", self._run.settings.goal, inputs, unit.context["cycles"],
                    tree, limits,
                )
            )  # fmt: skip
        return run_id

    def _tree(self) -> str:
        """The state of the workspace that the called flow starts from; empty if nothing in this run can change it."""
        if self._unit.step.isolate:
            return self._run.services.worktrees.open(self._unit.key).base
        return self._run.snapshots.take() if self._run.settings.changes_workspace else ""

    def outcome(self, run_id: str) -> Json:
        is_first = True
        with self._called.waiting(), self._clock.person():
            while True:
                found = self._found(run_id)
                if found.ending is not None and (outcome := self._end_of(run_id, found, retry=is_first)) is not None:
                    return outcome
                is_first = False
                with self._clock.turn() if found.is_active else nullcontext():
                    stopped = self._stopping.wait(LOOK_SECONDS)
                if stopped:
                    self._wait_for_cancelled(run_id)
                if stopped or self._run.progress.draining.is_set():
                    raise RunInterrupted

    def _found(self, run_id: str) -> PlacedRun:
        """The run as it is now. Counts what is reserved for it; once it is over, counts and reports what it spent."""
        found = self._called.find(run_id)
        if found is None:
            raise StorageError(f"the database does not contain the run {run_id}", "Restore it from a copy.")
        turns, tokens, cost = found.limits.turns or 0, found.limits.tokens or 0, found.limits.cost or Decimal(0)
        if found.ending is not None:
            totals = found.totals
            turns = int(totals.get("turns", 0))
            tokens = int(totals.get("input_tokens", 0) + totals.get("output_tokens", 0))
            cost = Cost.of_totals(totals).amount
            self._run.services.events.publish(PlacedRunEnded(run_id, self._unit.key, dict(totals)))
        self._budget.count_elsewhere(run_id, turns, tokens, cost, is_reserved=found.ending is None)
        return found

    def _end_of(self, run_id: str, found: PlacedRun, *, retry: bool) -> Json | None:
        """The outcome of a run that is over; None if it continues, as it gets more of the budget or a ``retry``."""
        copy = self._run.services.worktrees.open(self._unit.key).snapshots if self._unit.step.isolate else None
        outcome = self._called.outcome(run_id, copy)
        if outcome is not None and (not outcome["error"] or self._unit.tolerate):
            return outcome
        if found.outcome == BudgetUsedUp.reason or (retry and found.ending in RETRIED):
            self._called.resume(run_id, self._reserved(run_id, found.totals.get("seconds", 0.0)))
            return None
        return _unfinished(run_id, found, tolerate=self._unit.tolerate).as_json()

    def _reserved(self, run_id: str, worked_seconds: float = 0.0) -> Limits:
        """A share of what the budget has left, as soon as there is one. Raises `BudgetUsedUp`, `RunInterrupted`."""
        while True:
            try:
                return self._budget.reserve_share(run_id, self._unit.peers, worked_seconds)
            except BudgetUsedUp:
                if not self._budget.is_shared:
                    raise
            if self._stopping.wait(LOOK_SECONDS) or self._run.progress.draining.is_set():
                raise RunInterrupted

    def _wait_for_cancelled(self, run_id: str) -> None:
        """If the item was cancelled, wait until its run has stopped, so that what it spent is counted."""
        cancellations = Cancellations(self._run.services.folder.path)
        if any(cancellations.find(unit) for unit in enclosing_units(self._unit.key)):
            for _ in range(int(CANCEL_SECONDS / LOOK_SECONDS)):
                if self._found(run_id).ending is not None:
                    return
                time.sleep(LOOK_SECONDS)


def enclosing_units(key: str) -> list[str]:
    """The unit with that key, and those whose called flows it is in."""
    return list(accumulate(key.split("/"), lambda outer, inner: f"{outer}/{inner}"))


def _unfinished(run_id: str, found: PlacedRun, *, tolerate: bool) -> StepOutcome:
    """What it means for the caller that the run's flow has not ended."""
    reason, hint = f"run {run_id}: {found.reason}", f"`codex-multi-role show RUN={run_id}` shows it."
    if found.ending is ExitCode.INTERRUPTED:
        return StepOutcome({}, f"{reason} (cancelled)", skipped=True)
    if found.ending is ExitCode.WAITING:
        raise ReviewWaiting(reason, hint)
    if found.ending is ExitCode.BUDGET_USED_UP:
        raise QuotaUsedUp(reason, hint, found.resets_at)
    if tolerate:
        return StepOutcome({}, reason)
    raise RoleFailed(reason, found.outcome or RoleFailed.reason, hint)
