"""The checks of ``finally``: at the end of a run, also after a failure or a cancellation, but not if it is parked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.engine.step_limit import stopped_after
from codex_multi_role.errors import CodexMultiRoleError, Ending, ExitCode, RunStatus
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.run_folder.events import FinalCheckEnded
from codex_multi_role.steps import RunResources, StepOutcome, Unit
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.check import check_step


def run_final_checks(flow: FlowSpec, run: RunResources, state: FlowState, ending: Ending) -> Json:
    """Carry them all out, one after the other; ``{problem}``: what went wrong with the first that was not good.

    A run that is being stopped waits for them: each ends by its own deadline.
    """
    context = {**state.context(), "outcome": ending.outcome, "exit_code": int(ending.exit_code)}
    problems = [each for each in _problems(flow, run, context) if each]
    return {"problem": problems[0] if problems else ""}


def judged(ending: Ending, problem: str) -> Ending:
    """A bad final check turns a success into a failure; any other ending stays what it is."""
    if not problem or ending.exit_code != ExitCode.GOAL_REACHED:
        return ending
    reason = f"{ending.reason}, but at its end {problem}"
    code = ExitCode.GOAL_NOT_REACHED
    return replace(ending, status=RunStatus.ENDED, outcome="finally_failed", reason=reason, exit_code=code)


def _problems(flow: FlowSpec, run: RunResources, context: Json) -> Iterator[str]:
    for index, step in enumerate(flow.finally_):
        outcome = _outcome(run, step, Place(flow.source, ("finally", index)), context)
        problem = outcome.error or outcome.bad
        run.services.events.publish(FinalCheckEnded(step.id, step.check or "", problem))
        yield f"{step.id}: {problem}" if problem else ""


def _outcome(run: RunResources, step: StepSpec, place: Place, context: Json) -> StepOutcome:
    unit = Unit(
        step=step,
        key=f"finally.{step.id}",
        place=place,
        context=context,
        record=lambda _, work: work(time.time_ns()),  # the place of no other attempt, whose changes would be undone
        ask_role=_no_turns,
        call_flow=_no_turns,
        tolerate=True,
    )
    own = replace(run, progress=replace(run.progress, stopping=CancellationToken()))
    seconds = step.limits.seconds if step.limits is not None else None
    try:
        with stopped_after(seconds, own.progress.stopping.set):
            return check_step(own, unit)
    except CodexMultiRoleError as error:
        is_late = own.progress.stopping.is_set()
        return StepOutcome({}, f"it took longer than its limit of {seconds:g} s" if is_late else str(error))


def _no_turns(*_: Any) -> StepOutcome:  # noqa: ANN401 - of two callables
    raise AssertionError("a final check asks nobody")
