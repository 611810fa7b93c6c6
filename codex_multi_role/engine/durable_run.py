"""Run a flow durably: every turn, repair and check is one recorded step.

The walk decides from recorded results alone, so that a replay takes the same path. Only recorded steps touch clocks,
files and processes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import FlowSpec, render
from codex_multi_role.checks import find_check
from codex_multi_role.checks.test_changes import short_globs
from codex_multi_role.engine.askers import Asker, Instances, Scope
from codex_multi_role.engine.flow_walk import SAID_DONE, CallableFlows, FlowWalk
from codex_multi_role.engine.journal_slots import JournalSlot, JournalSlots, RunHalted, refuse_when_stopping
from codex_multi_role.engine.step_limit import stopped_after
from codex_multi_role.errors import (
    LOOK,
    MORE_CYCLES,
    WITHOUT_SANDBOX,
    DefinitionError,
    Ending,
    ExitCode,
    RunStatus,
    StorageError,
    UsageError,
    ending_for,
)
from codex_multi_role.flow import End, FlowState
from codex_multi_role.flow.references import SUGGEST_NAMES
from codex_multi_role.run_folder.events import FinalCheckEnded
from codex_multi_role.run_folder.past import START, state_at
from codex_multi_role.steps import Recorder, RunResources, StepOutcome, Unit, Work
from codex_multi_role.steps.cancellation_token import CancellationToken
from codex_multi_role.steps.check import WITHOUT_SLOT, check_step
from codex_multi_role.steps.test_runs import run_tests, without_tree


class DurableRun:
    """One run: its flows, its live parts, and the state that a replay rebuilds.

    ``ending`` is resolved when the walk halts in this process.
    """

    def __init__(self, flows: CallableFlows, state: FlowState, run: RunResources) -> None:
        self._flows = flows
        self._run = run
        self.state = state
        self.ending: Future[Ending] = Future()
        self._tested_last = False  # what is recorded there stays: no other step can follow

    def work(self, slots: Iterator[JournalSlot]) -> None:
        """Walk the whole flow, with these slots of the journal from its start on. Raises nothing."""
        ids = JournalSlots(partial(refuse_when_stopping, self._run), slots, save=self._run.services.save)
        walk = FlowWalk(self._flows, Scope(self._run, ids, Asker(self._run, Instances()), self.state))
        try:
            if self._run.services.baseline.rewinds:
                self._run.after_baseline()
            end = walk.walk()
            self._run.after_baseline()
            if end.exit_code == 0:
                self._test_what_is_left(ids)
            ending = self._ending(end)
        except RunHalted as halted:
            ending = halted.ending
        except BaseException as error:  # a journal may have some that are no `Exception`
            ending = ending_for(error)
        self.ending.set_result(self._after_final_checks(self._of_step(ending), ids))

    def _after_final_checks(self, ending: Ending, ids: JournalSlots) -> Ending:
        flow = self._flows.specs[self.state.flow]
        if not flow.finally_ or ending.status == RunStatus.PARKED:
            return ending
        try:
            return after_final_checks(flow, self._run, self.state, ending, ids)
        except RunHalted as halted:
            return halted.ending
        except BaseException as error:  # as above
            return ending_for(error)

    def _of_step(self, ending: Ending) -> Ending:
        """The ending with what to do, if a value was wrong."""
        if ending.outcome != UsageError.reason:
            return ending
        if not self.state.has_results:
            return replace(ending, suggestion="")
        running = [f"{name}:{step.visits}" for name, step in self.state.steps.items() if step.status == "running"]
        again = f"fork RUN --from {running[0]}" if running else LOOK
        return replace(ending.after_results, suggestion=ending.suggestion or again)

    def _test_what_is_left(self, ids: JournalSlots) -> None:
        """Run the tests if files have changed since the last time: the result on the workspace's own files counts.

        The first time is that of the baseline, so that also counts what only a command has changed.
        """
        run, state = self._run, self.state
        first = state_at(run.services.folder, START) if run.services.baseline.is_measured else ""
        tested, slot = state.tested or first, ids.reserve(1)
        if not (tested and run.settings.tests.enabled):
            return
        # Recorded also if nothing has changed: after a kill, the files can be what final checks have made of them.
        with slot.record("tests at the end") as work:
            if work.is_due and run.snapshots.take() != tested:
                work.result = run_tests(run, "", 0)
        if work.result:
            state.latest_tests, state.tested = without_tree(run, work.result)
            state.tests_judged = False
            self._tested_last = True

    def _ending(self, end: End) -> Ending:
        said_done = end.outcome == SAID_DONE and self.state.finished_by
        if end.exit_code == 0 and self.state.fails_tests:
            return self._failing(end, f"{self.state.finished_by} said DONE" if said_done else f"{end.outcome}")
        if said_done:
            said = f"{self.state.finished_by} said DONE"
            return Ending(RunStatus.SUCCEEDED, SAID_DONE, said, ExitCode.GOAL_REACHED)
        status = RunStatus.SUCCEEDED if end.exit_code == 0 else RunStatus.ENDED
        reason = self._rendered(end, "reason", self.state.context()) or end.reason
        reason = reason or f"{self.state.flow} finished: {end.outcome}"
        return Ending(status, end.outcome, reason, ExitCode(end.exit_code), suggestion=self._suggestion(end))

    def _suggestion(self, end: End) -> str:
        if end.exit_code == 0:
            return ""
        context = {name: self.state.context()[name] for name in SUGGEST_NAMES}
        own = self._rendered(end, "suggest", context)
        is_of_tests = bool(end.step) and self.state.steps[end.step].output == self.state.latest_tests
        return own or (is_of_tests and self._allow(end)) or self._more_cycles(end) or self._again(end)

    def _allow(self, end: End) -> str:
        """Confirm that tests are gone, which judges them again without running anything; or allow what they need."""
        tests = self.state.latest_tests or {}
        if not self.state.misses_tests:
            new = set(tests.get("new_failures_tests") or ())
            is_denied = end.step and new and new <= set(tests.get("forbidden_tests") or ())
            return f"{self._again(end)} {WITHOUT_SANDBOX}" if is_denied else ""
        globs = short_globs(tests["removed_tests"])
        return " ".join(["resume RUN", *(f"--allow-removed-tests {shlex.quote(glob)}" for glob in globs)])

    def _more_cycles(self, end: End) -> str:
        return f"resume RUN --cycles {self.state.cycles + MORE_CYCLES}" if end.by_cycles else ""

    def _again(self, end: End) -> str:
        """Fork the run before the step that ended it: a resume would take its recorded result."""
        return f"fork RUN --from {end.step}:{self.state.steps[end.step].visits}" if end.step else LOOK

    def _rendered(self, end: End, key: str, context: Mapping[str, Any]) -> str:
        """The flow's own text for its end; empty if it has none or cannot be rendered from the current values."""
        template = getattr(end.route, key, None)
        with suppress(DefinitionError):
            return str(render(template or "", context, f"{self.state.flow}: {end.outcome}: {key}")).strip()
        return ""

    def _failing(self, end: End, instead: str) -> Ending:
        """The ending instead of a success that the latest test result contradicts."""
        tests = self.state.latest_tests or {}
        why = find_check("tests").why_bad(tests) or tests["status"]
        reason = f"{instead}, but the latest test result is: {why} (tests/{tests['number']:03d})"
        suggestion = self._allow(end) or ("" if self._tested_last else self._more_cycles(end)) or self._again(end)
        return Ending(RunStatus.ENDED, "tests_failed", reason, ExitCode.GOAL_NOT_REACHED, suggestion=suggestion)


Begin = Callable[[DurableRun], None]
"""Starts the run with these live parts, or resumes it after its last recorded step. Returns at once.

Raises `StorageError` for a journal of another version, and for one that cannot be written.
"""


def after_final_checks(
    flow: FlowSpec, run: RunResources, state: FlowState, ending: Ending, ids: JournalSlots
) -> Ending:
    """The ending of the run after the checks of ``finally``: a problem fails a success, and is reported in any case.

    After a success, each has a slot of the journal like a step's check, because no other work can follow. Any other end
    can be resumed, and the next one needs the checks again: only an interrupted one leaves a note.

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
    return lambda _: nullcontext(Work(WITHOUT_SLOT)) if slot is None else slot.record(f"finally {step_id}")


def _problem(run: RunResources, unit: Unit, ending: Ending) -> str:
    """Why the check's result is bad, or why it could not run. Nobody is asked directly: the run may be stopping."""
    stopping = CancellationToken()
    progress, baseline = replace(run.progress, stopping=stopping), run.services.baseline.stopped()
    services = replace(run.services, ask_person=None, baseline=baseline)
    seconds = unit.step.limits.seconds
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
