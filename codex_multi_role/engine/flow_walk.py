"""Walk a flow: take a step, find the next one, until an end. A called flow is walked the same way, one level down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec
from codex_multi_role.catalog.flow_spec import reached_from, step_place
from codex_multi_role.checks import find_check
from codex_multi_role.engine.askers import EveryRole, Scope
from codex_multi_role.engine.fan_out import FanOut
from codex_multi_role.engine.journal_slots import RunHalted
from codex_multi_role.engine.step_limit import carry_out_within, has_limit, limited, round_within
from codex_multi_role.errors import CodexMultiRoleError, DefinitionError, Ending, ExitCode, RoleFailed, ending_for
from codex_multi_role.flow import End, GoTo, WalkBound, after, new_state
from codex_multi_role.flow.conditions import depth_of
from codex_multi_role.flow.fan_out_items import title_of
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.run_folder.events import DoneIgnored, StepEnded, StepStarted
from codex_multi_role.run_folder.states import COMPLETED, FAILED, RUN
from codex_multi_role.steps import StepOutcome, Unit, merge_failure, merged_back, step_failure

SAID_DONE = "done"
FAILED_STEP = "failed"


@dataclass(frozen=True)
class CallableFlows:
    """A run's flow and those it calls, by name; ``bound(cycles)``: the upper bounds of the run's walk."""

    specs: Mapping[str, FlowSpec]
    bound: Callable[[int], WalkBound]


class FlowWalk:
    """One walk through one flow.

    ``key``: where it was called from; ``calls``: the calling steps, the run's own first.
    """

    def __init__(
        self,
        flows: CallableFlows,
        scope: Scope,
        *,
        key: str = "",
        calls: tuple[str, ...] = (),
    ) -> None:
        self._flows = flows
        self._scope = scope
        self._run = scope.run
        self._flow: FlowSpec = flows.specs[scope.state.flow]
        self._key = key
        self._calls = calls
        self._announced = ("", 0)
        self._announce_lock = threading.Lock()  # waits: for calls of git, ended by GIT_SECONDS each
        self._refused: DoneIgnored | None = None  # published if what follows is really done, not on a replay
        self.state = scope.state

    @property
    def _bound(self) -> WalkBound:
        return self._bound_with(self.state.cycles)

    def _bound_with(self, cycles: int) -> WalkBound:
        """Upper bounds of this walk."""
        bound = self._flows.bound(cycles)
        for step_id in self._calls:
            bound = bound.called[step_id]
        return bound

    def walk(self) -> End:
        """Take steps until an end. The end named `SAID_DONE` means that a role said DONE."""
        step = self._flow.steps[0]
        while True:
            visit = self.state.enter(step.id)
            self._take(step, visit)
            if self.state.finished_by and not self._may_refuse_done(step):
                return End(SAID_DONE, 0, step.id, by_cycles=self._leads_back(step))
            move = self._next(step)
            if isinstance(move, End):
                done = End(SAID_DONE, 0, step.id, by_cycles=move.by_cycles)
                return done if self.state.finished_by else move
            self._refused = self._refuse_done()
            step = move.step

    def _next(self, step: StepSpec) -> GoTo | End:
        """Set the step's variables and choose what follows; the step has failed if that cannot be computed."""
        state, place = self.state, self._place(step)
        try:
            state.set_vars(step, place)
            return after(self._flow, step, state)
        except DefinitionError as error:
            key = f"{self._key}{step.id}.{state.steps[step.id].visits}"
            failure = step_failure(error, key, state.context(), place)
            state.fail(step.id, str(failure))
            raise RunHalted(ending_for(failure)) from error

    def _place(self, step: StepSpec) -> Place:
        return step_place(self._flow, self._flow.steps.index(step))

    def _may_refuse_done(self, step: StepSpec) -> bool:
        """Whether the flow can reach its first step again instead of ending with tests that newly fail."""
        fails = self.state.fails_tests and not self.state.misses_tests
        return fails and self.state.cycle < self.state.cycles and self._leads_back(step)

    def _leads_back(self, step: StepSpec) -> bool:
        """Whether the run's own flow can reach its first step again after ``step``."""
        return not self._key and self._flow.steps[0] in reached_from(self._flow, self._flow.steps.index(step))

    def _refuse_done(self) -> DoneIgnored | None:
        """Continue although a role may have said DONE; the event that says so."""
        role, tests = self.state.finished_by, self.state.latest_tests
        self.state.refuse_done()
        if not role or tests is None:
            return None
        said = next(entry for entry in reversed(self.state.history) if entry.role == role)
        return DoneIgnored(said.instance, said.turn, find_check("tests").why_bad(tests))

    def _take(self, step: StepSpec, visit: int) -> None:
        place = self._scope.ids.checkpoint() if not self._key else 0
        ids = self._scope.ids.with_hook(lambda: self._announce(step, visit, place))
        scope, key = replace(self._scope, ids=ids), f"{self._key}{step.id}.{visit}"
        work: EveryRole | FanOut | _One
        is_limited = has_limit(step) and step.for_each is None
        own = limited(scope, step, partial(self._records, step)) if is_limited else scope
        if step.ask == EVERY_ROLE:
            work = EveryRole(own, step, partial(round_within, own, scope.run, step))
        elif step.for_each is not None:
            records = partial(self._records, step)
            work = FanOut(scope, step, step.for_each, key, self._place(step), self._unit, records)
        else:
            work = _One(scope, own, self._unit(step, key, self.state.context(), own))
        outcomes, failure = work.outcomes()
        for outcome in outcomes:
            self._absorb(step, outcome)
        if failure is not None:
            raise RunHalted(ending_for(failure)) if isinstance(failure, CodexMultiRoleError) else failure
        output, error, bad = work.output(outcomes)
        self._end_visit(step, visit, error, bad)
        self.state.leave(step.id, output, error, bad)
        self.state.pass_on(step, [outcome.answer for outcome in outcomes])

    def _records(self, step: StepSpec, cycles: int) -> int:
        """How many slots of the journal one item of the step can need."""
        return self._bound_with(cycles).unit_records[step.id]

    def _unit(self, step: StepSpec, key: str, context: Mapping[str, Any], scope: Scope) -> Unit:
        unit = Unit(
            step=step,
            key=key,
            place=self._place(step),
            context=context,
            record=scope.ids.record,
            ask_role=partial(scope.asker.ask_for, self.state),
            call_flow=partial(self._call, scope),
            tolerate="failed" in (step.allow if step.for_each is None else step.for_each.allow),
        )
        return scope.observe(unit)

    def _call(self, scope: Scope, unit: Unit, inputs: Mapping[str, Any]) -> StepOutcome:
        """Walk the called flow. The state of the ``scope`` collects what it asked.

        A failure in it is raised, and is this unit's outcome only if the unit tolerates it. Therefore it is recorded
        where it happened.
        """
        name = unit.step.call or ""
        if unit.step.id not in self._bound.called:
            problem = f"{unit.where}: {name} calls itself deeper than {depth_of(unit.step)} levels"
            if unit.tolerate:
                return StepOutcome({}, problem)
            raise RunHalted(ending_for(RoleFailed(problem, "too_deep")))
        flow, caller = self._flows.specs[name], scope.state
        resolved = flow.resolve_inputs(inputs)
        scope = self._isolated(unit, scope)
        state = new_state(flow, self.state.goal, resolved, unit.context["cycles"])
        state.asks |= caller.asks
        calls = (*self._calls, unit.step.id)
        ids = replace(scope.ids, keeps_failures=scope.ids.keeps_failures or unit.tolerate)
        walk = FlowWalk(self._flows, replace(scope, state=state, ids=ids), key=unit.below, calls=calls)
        try:
            return walk.outcome(walk.walk())
        except RunHalted as halted:
            if unit.tolerate and halted.ending.is_of_step:
                return walk.failed(halted.ending)
            raise RunHalted(halted.ending.after_results if state.has_results else halted.ending) from halted
        finally:
            caller.asks |= state.asks
            caller.history += state.history

    @staticmethod
    def _isolated(unit: Unit, scope: Scope) -> Scope:
        """The scope of a called flow, in a copy of the workspace if the step isolates it."""
        if unit.step.isolate is None:
            return scope
        run, key = scope.run, unit.key
        with unit.record(f"copy {key}") as work:
            if work.is_due:
                run.after_baseline()
                run.in_copy(key, fresh=True)
                work.result = {"copy": key}
        run = replace(run, within=key)
        return replace(scope, run=run, asker=scope.asker.within(run))

    def failed(self, ending: Ending) -> StepOutcome:
        """What a caller that tolerates it sees of a failure in this flow: its steps as far as they came."""
        return self.outcome(End(FAILED_STEP, int(ExitCode.FAILED)), ending.reason)

    def outcome(self, end: End, error: str = "") -> StepOutcome:
        """What the caller of this flow sees of its ``end``."""
        state = self.state
        visited = {name: each for name, each in state.steps.items() if each.visits and self._flow.shows(name)}
        steps = {name: {} if each.status == "running" else each.output for name, each in visited.items()}
        output = {"outcome": end.outcome, "exit_code": end.exit_code, "vars": state.vars, "steps": steps}
        bad = f"{self._flow.name} ended with {end.outcome}" if end.exit_code and not error else ""
        bad += f": {end.reason}" if bad and end.reason else ""
        return StepOutcome(
            output,
            error,
            tests=state.latest_tests,
            handoffs=state.shown_handoffs,
            bad=bad,
            tested=state.tested,
            judged=state.tests_judged,
        )

    def _absorb(self, step: StepSpec, outcome: StepOutcome) -> None:
        shown = self._flow.shows(step.id)
        self.state.take_handoffs(outcome.handoffs, shown=shown)
        if outcome.tests is not None:
            self.state.latest_tests, self.state.tested = outcome.tests, outcome.tested
            self.state.tests_judged = outcome.judged
        turn = outcome.turn
        if turn is not None and turn.handoff is not None:
            self.state.note_turn(turn.role, turn.instance, turn.number)
            is_failed_item = step.for_each is not None and bool(outcome.error)  # what it says is no answer
            if not outcome.lost and not is_failed_item:
                self.state.take_handoffs({turn.role: turn.handoff}, shown=shown)
        if turn is not None and outcome.done and not self.state.finished_by:
            self.state.finished_by = turn.role

    def _announce(self, step: StepSpec, visit: int, place: int) -> None:
        """Publish that a visit begins, with what a fork from there needs: its journal position and the workspace."""
        with self._announce_lock:  # items of a resumed fan-out come in parallel
            if self._announced == (step.id, visit):
                return
            if self._refused is not None:
                self._run.services.events.publish(self._refused)
            tree = self._run.snapshots.take() if place and self._run.settings.changes_workspace else ""
            self._run.services.events.publish(
                StepStarted(f"{self._key}{step.id}", visit, self.state.cycle, place, tree, self._title(step))
            )
            if self._run.services.states is not None and step.state is not None and not self._key:
                self._run.services.states.move(RUN, "", step.state)  # not earlier: a fork from here must still enter it
            self._announced = (step.id, visit)

    def _title(self, step: StepSpec) -> str:
        return title_of(step, self.state.context()) if step.for_each is None else ""

    def _end_visit(self, step: StepSpec, visit: int, error: str, bad: str) -> None:
        """Publish that it has ended, unless this session only replays it."""
        if self._announced == (step.id, visit):
            state, fan_out = FAILED if error else COMPLETED, step.for_each
            met = fan_out is not None and fan_out.until is not None and not (error or bad)
            self._run.services.events.publish(StepEnded(f"{self._key}{step.id}", visit, state, error, bad, met))


class _One:
    """A step that is one unit."""

    def __init__(self, scope: Scope, own: Scope, unit: Unit) -> None:
        self._scope, self._own, self._unit = scope, own, unit

    def outcomes(self) -> tuple[list[StepOutcome], BaseException | None]:
        run, unit = self._scope.run, self._unit
        outcome = carry_out_within(self._own, run, unit)
        merged = merged_back(run, unit.step, unit.key, outcome, self._scope.ids.record)
        fails = merged.lost and not unit.tolerate
        return [merged], merge_failure(run, unit.step, unit.key, merged) if fails else None

    @staticmethod
    def output(outcomes: Sequence[StepOutcome]) -> tuple[Json, str, str]:
        return outcomes[0].output, outcomes[0].error, outcomes[0].bad
