"""``limits: {seconds}``: the longest work of a step, or of one item of it, all tries included."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from codex_multi_role.catalog import StepSpec
from codex_multi_role.engine.askers import Scope
from codex_multi_role.engine.journal_slots import JournalSlots, RunHalted
from codex_multi_role.errors import StepTimedOut, ending_for
from codex_multi_role.steps import RunResources, StepOutcome, Unit
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.carry_out import carry_out


def has_limit(step: StepSpec) -> bool:
    return step.limits is not None and step.limits.seconds is not None


class StepLimit:
    """Ends the work of one unit when its time is up. ``run``: its own, so that nothing else stops with it.

    A failure that is tolerated is recorded, because the work behind it was not. Any other ends the run, whose resume
    tries again.
    """

    def __init__(self, step: StepSpec, run: RunResources, ids: JournalSlots) -> None:
        self._seconds = step.limits.seconds if step.limits is not None else None
        self._run = run
        self._decision = ids.decision(f"{step.id}: limit") if self._seconds else None
        self._problem = f"step {step.id} took longer than its limit of {self._seconds or 0:g} s"
        self._is_over = False

    def outcome(self, work: Callable[[], StepOutcome], *, tolerate: bool) -> StepOutcome:
        """That of ``work``, which raises `RunHalted` if it is stopped."""
        if self._decision is None or self._seconds is None:
            return work()
        if self._decision.find() is not None:
            return StepOutcome({}, self._problem)
        timer = threading.Timer(self._seconds, self._end)
        timer.start()
        try:
            return work()
        except RunHalted:
            if not self._is_over:
                raise
            if not tolerate:
                raise RunHalted(ending_for(StepTimedOut(self._problem))) from None
            self._decision.record({"seconds": self._seconds})
            return StepOutcome({}, self._problem)
        finally:
            timer.cancel()

    def _end(self) -> None:
        if not self._run.progress.stopping.is_set():
            self._is_over = True
            self._run.progress.stopping.set()


def limited(scope: Scope, step: StepSpec, records: Callable[[int], int]) -> Scope:
    """The scope of a step that is one unit and has a limit: a run that can stop alone, and slots of its own.

    The slots after it are the same whenever its work ends.
    """
    state = scope.state
    size = scope.ids.record(f"{step.id}: reserve", lambda _: {"size": records(state.cycles)})["size"]
    run = replace(scope.run, progress=replace(scope.run.progress, stopping=CancellationToken()))
    return replace(scope, run=run, asker=scope.asker.on(run), ids=scope.ids.reserve(size + 1))


def carry_out_within(own: Scope, outer: RunResources, unit: Unit) -> StepOutcome:
    """The outcome of a step that is one unit, in its ``own`` scope, which stops if the ``outer`` run does."""
    work = partial(carry_out, own.run, unit)
    if own.run is outer:
        return work()
    limit = StepLimit(unit.step, own.run, own.ids)
    with outer.progress.stopping.calling(own.run.progress.stopping.set):
        return limit.outcome(work, tolerate=unit.tolerate)
