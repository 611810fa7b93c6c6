"""``limits: {seconds}``: the longest work of a step, or of one item of it, all tries included."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from codex_multi_role.catalog import StepSpec
from codex_multi_role.engine.askers import Outcomes, Scope
from codex_multi_role.engine.journal_slots import JournalSlots, RunHalted, refuse_when_stopping
from codex_multi_role.errors import RoleFailed, StepTimedOut, ending_for
from codex_multi_role.steps import RunResources, StepOutcome, Unit
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.carry_out import carry_out


def has_limit(step: StepSpec) -> bool:
    return step.limits.seconds is not None


@contextmanager
def stopped_after(seconds: float | None, stop: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` if the block takes longer; without ``seconds``, never."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class StepLimit:
    """Ends the work of one unit when its time is up. ``run``: its own, so that nothing else stops with it.

    A failure that is tolerated, by the step or its caller, is recorded, because the work behind it was not; a replay
    then only does what is recorded. Any other ends the run, whose resume tries again.
    """

    def __init__(self, step: StepSpec, run: RunResources, ids: JournalSlots) -> None:
        self._seconds = step.limits.seconds
        self._run = run
        self._keeps_failures = ids.keeps_failures
        self._decision = ids.decision(f"{step.id}: limit") if self._seconds else None
        self._problem = f"step {step.id} took longer than its limit of {self._seconds or 0:g} s"
        self._is_over = False

    def outcome(self, work: Callable[[], StepOutcome], *, tolerate: bool) -> StepOutcome:
        """That of ``work``, which raises `RunHalted` if it is stopped."""
        try:
            with self._measured():
                return work()
        except RunHalted:
            if not self._is_over:
                raise
            failure = self._failure(is_kept=tolerate)
            if not tolerate:
                raise failure from None
            return StepOutcome({}, self._problem)

    def outcomes(self, work: Callable[[], Outcomes]) -> Outcomes:
        """Those of ``work``, and its failure."""
        with self._measured():
            outcomes, failure = work()
        return outcomes, self._failure() if failure is not None and self._is_over else failure

    @contextmanager
    def _measured(self) -> Iterator[None]:
        """Stop the block when the time is up, or at once if it was in an earlier session."""
        if self._decision is not None and self._decision.find() is not None:
            self._end()
        with stopped_after(self._seconds, self._end):
            yield

    def _failure(self, *, is_kept: bool = False) -> RunHalted:
        if self._decision is not None and (is_kept or self._keeps_failures):
            self._decision.record({"seconds": self._seconds})
        return RunHalted(ending_for(StepTimedOut(self._problem)))

    def _end(self) -> None:
        if not self._run.progress.stopping.is_set():
            self._is_over = True
            self._run.progress.stopping.set()


def round_within(own: Scope, outer: RunResources, step: StepSpec, work: Callable[[], Outcomes]) -> Outcomes:
    """The outcomes of a step that asks every role, in its ``own`` scope; the failure says so if its time was up."""
    if own.run is outer:
        return work()
    limit = StepLimit(step, own.run, own.ids)
    with outer.progress.stopping.calling(own.run.progress.stopping.set):
        return limit.outcomes(work)


def limited(scope: Scope, step: StepSpec, records: Callable[[int], int]) -> Scope:
    """The scope of a step that is one unit and has a limit: a run that can stop alone, and slots of its own.

    The slots after it are the same whenever its work ends.
    """
    with scope.ids.record(f"{step.id}: reserve") as work:
        if work.is_due:
            scope.run.after_baseline()  # which does not count as the step's time
            work.result = {"size": records(scope.state.cycles)}
    run = replace(scope.run, progress=replace(scope.run.progress, stopping=CancellationToken()))
    ids = scope.ids.reserve(work.result["size"] + 1).with_hook(partial(refuse_when_stopping, run))
    return replace(scope, run=run, asker=scope.asker.on(run), ids=ids)


def outcome_of(run: RunResources, unit: Unit) -> StepOutcome:
    """The outcome of carrying out the unit.

    Also halts for a failure that was recorded as an outcome, by an earlier version or while the flow tolerated it.
    """
    outcome = carry_out(run, unit)
    turn = outcome.turn
    if not outcome.error or unit.tolerate or outcome.skipped or (turn and run.catalog.role(turn.role).optional):
        return outcome
    raise RunHalted(ending_for(RoleFailed(outcome.error, turn.outcome if turn else RoleFailed.reason)))


def carry_out_within(own: Scope, outer: RunResources, unit: Unit) -> StepOutcome:
    """The outcome of a step that is one unit, in its ``own`` scope, which stops if the ``outer`` run does."""
    work = partial(outcome_of, own.run, unit)
    if own.run is outer:
        return work()
    limit = StepLimit(unit.step, own.run, own.ids)
    with outer.progress.stopping.calling(own.run.progress.stopping.set):
        return limit.outcome(work, tolerate=unit.tolerate)
