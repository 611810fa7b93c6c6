"""Carry out one unit of any kind: its retries, and whether its failure ends the run."""

from __future__ import annotations

from dataclasses import replace

from codex_multi_role.errors import RunInterrupted, UsageError
from codex_multi_role.run_folder.states import FAILED, IN_PROGRESS
from codex_multi_role.steps.ask import ask_step
from codex_multi_role.steps.check import check_step
from codex_multi_role.steps.resources import RunResources
from codex_multi_role.steps.review import review_step
from codex_multi_role.steps.unit import StepKind, StepOutcome, Unit

KINDS: dict[str, StepKind] = {
    "ask": ask_step,
    "check": check_step,
    "review": review_step,
    "call": lambda _, unit: unit.call_flow(unit, unit.fill("with")),  # how it ends is an output, not a failure
}


def carry_out(run: RunResources, unit: Unit) -> StepOutcome:
    """The unit's outcome after at most ``retry.attempts`` attempts; the pauses between them are also recorded.

    A bad result is tried again like a failure, except for a person's answer.

    Raises what its kind raises if the last attempt failed and the failure is not tolerated.
    """
    retry = unit.step.retry
    attempts = retry.attempts if retry else 1
    for attempt in range(1, attempts + 1):
        last = attempt == attempts
        unit.set_state(IN_PROGRESS, "")
        tried = replace(unit, tolerate=unit.tolerate or not last, attempt=attempt)
        try:
            outcome = KINDS[unit.step.kind](run, tried)
        except UsageError as error:  # outside recorded work: the step cannot get what its templates would give it
            outcome = _without_values(tried, tried.failure(error))
        if last or outcome.is_good or (outcome.bad and unit.step.review):
            return outcome
        unit.set_state(FAILED, outcome.error or outcome.bad)
        pause = retry.backoff_seconds * 2 ** (attempt - 1) if retry else 0.0
        with unit.record("pause") as work:
            if work.is_due:
                _pause(run, pause)
    raise AssertionError("a step has at least one attempt")


def _without_values(unit: Unit, failure: UsageError) -> StepOutcome:
    """The failure as recorded work, which announces the step."""
    with unit.record("values") as work:
        if work.is_due:
            if not unit.tolerate:
                raise failure
            work.result = {"error": str(failure)}
    return StepOutcome({}, work.result["error"])


def _pause(run: RunResources, seconds: float) -> None:
    if run.progress.stopping.wait(seconds):
        raise RunInterrupted
