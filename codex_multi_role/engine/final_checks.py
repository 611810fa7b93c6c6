"""The checks of ``finally``: at the end of a run, also after a failure or a cancellation, but not if it is parked.

After a success, each has a slot of the journal like a step's check, because no other work can follow. Any other end can
be resumed, and the next one needs the checks again. So they have no slots there: only an interrupted one leaves a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codex_multi_role.catalog import FlowSpec
from codex_multi_role.engine.journal_slots import JournalSlots, RunHalted
from codex_multi_role.engine.step_limit import stopped_after
from codex_multi_role.errors import Ending, ExitCode, RunStatus, StorageError, ending_for
from codex_multi_role.flow import FlowState
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import FinalCheckEnded
from codex_multi_role.steps import Recorder, RunResources, StepOutcome, Unit, Work
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.check import check_step
from codex_multi_role.steps.repeated_check import WITHOUT_SLOT


def after_final_checks(
    flow: FlowSpec, run: RunResources, state: FlowState, ending: Ending, ids: JournalSlots
) -> Ending:
    """The ending of the run after its final checks: a problem turns a success into a failure, and is told in any case.

    ``ids``: the slots after those of all other work. Raises `RunHalted` if a check waits for a person.
    """
    problems = "; ".join(filter(None, _problems(flow, run, state, ending, ids)))
    if not problems:
        return ending
    if ending.exit_code != ExitCode.GOAL_REACHED:
        return replace(ending, reason=f"{ending.reason}; at its end {problems}")
    reason, code = f"{ending.reason}, but at its end {problems}", ExitCode.GOAL_NOT_REACHED
    return replace(ending, status=RunStatus.ENDED, outcome="finally_failed", reason=reason, exit_code=code)


def _problems(flow: FlowSpec, run: RunResources, state: FlowState, ending: Ending, ids: JournalSlots) -> Iterator[str]:
    """What went wrong with each check, one after the other. A run that is being stopped waits for all of them."""
    ids = replace(ids, before=lambda: None)
    context = {**state.context(), "outcome": ending.outcome, "exit_code": int(ending.exit_code)}
    for step, place in flow.final_checks:
        record = _recorder(step.id, ids.reserve(1) if ending.exit_code == ExitCode.GOAL_REACHED else None)
        unit = Unit(step, f"finally.{step.id}", place, context, record, ask_role=_no_turns, call_flow=_no_turns)
        problem = _problem(run, unit, ending)
        run.services.events.publish(FinalCheckEnded(step.id, step.check or "", problem))
        yield f"{step.id}: {problem}" if problem else ""


def _recorder(step_id: str, slot: JournalSlots | None) -> Recorder:
    def record(name: str, work: Work) -> Json:
        return work(WITHOUT_SLOT) if slot is None else slot.record(f"finally {step_id}", work)

    return record


def _problem(run: RunResources, unit: Unit, ending: Ending) -> str:
    """Why the check's result is bad, or why it could not run. Nobody is asked directly: the run may be stopping."""
    stopping = CancellationToken()
    progress, baseline = replace(run.progress, stopping=stopping), run.services.baseline.stopped()
    services = replace(run.services, ask_person=None, baseline=baseline)
    seconds = unit.step.limits.seconds if unit.step.limits is not None else None
    try:
        with stopped_after(seconds, stopping.set):
            return check_step(replace(run, progress=progress, services=services), unit).bad
    except RunHalted as halted:
        failure = halted.ending
        if failure.outcome == StorageError.reason:
            raise
    except Exception as error:
        failure = ending_for(error)
    if failure.status == RunStatus.PARKED and ending.exit_code != ExitCode.INTERRUPTED:
        raise RunHalted(failure)
    if stopping.is_set():
        return f"it took longer than its limit of {seconds:g} s"
    return failure.reason.removeprefix(f"{unit.where}: ")


def _no_turns(*_: Any) -> StepOutcome:  # noqa: ANN401 - of two callables
    raise AssertionError("a final check asks nobody")
