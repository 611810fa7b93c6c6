"""Walk a flow: take a step, find the next one, until an end. A called flow is walked the same way, one level down."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, StepSpec
from codex_multi_role.catalog.flow_steps import NEEDED
from codex_multi_role.engine.askers import Asker
from codex_multi_role.engine.fan_out import fan_out
from codex_multi_role.engine.fan_out_item import FanOutItem
from codex_multi_role.engine.journal_slots import JournalSlots
from codex_multi_role.engine.team import Team
from codex_multi_role.errors import RoleFailed, UsageError
from codex_multi_role.flow import (
    End,
    FlowState,
    WalkBound,
    after,
    items_of,
    needs_of,
    new_state,
    steps_per_ask,
)
from codex_multi_role.flow.state import shown
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder.events import StepStarted, Warning
from codex_multi_role.run_folder.item_results import ItemResults
from codex_multi_role.run_folder.states import RUN
from codex_multi_role.steps import RunResources, StepOutcome, Unit, carry_out, merged_back

SAID_DONE = "done"
FAILED_STEP = "failed"


@dataclass(frozen=True)
class CallableFlows:
    """A run's flow and those it calls, by name; ``bound(cycles)``: the upper bounds of the run's walk."""

    specs: Mapping[str, FlowSpec]
    bound: Callable[[int], WalkBound]


class FlowWalk:
    """One walk through one flow.

    ``key``: where it was called from; ``calls``: the calling steps, the run's own first. A ``tolerant`` walk ends at
    its first failing step instead of halting the run, with the reason in ``error``.
    """

    def __init__(
        self,
        run: RunResources,
        flows: CallableFlows,
        state: FlowState,
        ids: JournalSlots,
        asker: Asker,
        *,
        key: str = "",
        calls: tuple[str, ...] = (),
        tolerant: bool = False,
    ) -> None:
        self._run = run
        self._flows = flows
        self._flow: FlowSpec = flows.specs[state.flow]
        self._ids = ids
        self._asker = asker
        self._key = key
        self._calls = calls
        self._tolerant = tolerant
        self._announced = ("", 0)
        self._items_lock = threading.Lock()
        self.state = state
        self.error = ""

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
            if self.state.finished_by:
                return End(SAID_DONE, 0, step.id)
            if self.error:
                return End(FAILED_STEP, 1)
            self.state.set_vars(step, str(self._flow.source))
            move = after(self._flow, step, self.state)
            if isinstance(move, End):
                return move
            step = move.step

    def _take(self, step: StepSpec, visit: int) -> None:
        place = self._ids.checkpoint() if not self._key else 0
        ids = self._ids.with_hook(lambda: self._announce(step, visit, place))
        key = f"{self._key}{step.id}.{visit}"
        if step.ask == EVERY_ROLE:
            self._ask_every_role(step, ids)
        elif step.for_each is not None:
            self._fan_out(step, key, ids)
        else:
            unit = self._unit(step, key, self.state.context(), ids, self._asker, self.state, self._run)
            outcome = carry_out(self._run, unit)
            outcome = merged_back(self._run, step, key, outcome, ids.record)
            self._absorb(step, outcome)
            self._leave(step, outcome.output, outcome.error)

    def _leave(self, step: StepSpec, output: Json, error: str) -> None:
        self.state.leave(step.id, output, error)
        if error and step.on_error == "fail" and self._tolerant:
            self.error = error

    def _unit(
        self,
        step: StepSpec,
        key: str,
        context: Mapping[str, Any],
        ids: JournalSlots,
        asker: Asker,
        state: FlowState,
        run: RunResources,
    ) -> Unit:
        """The unit of a step. ``state`` collects what a called flow asked; ``run`` is what that flow works with."""
        return Unit(
            step=step,
            key=key,
            context=context,
            record=ids.record,
            ask_role=lambda unit: asker.ask(unit, self.state),
            call_flow=lambda unit, inputs: self._call(run, unit, inputs, ids, asker, state),
            tolerate=self._tolerant or step.on_error == "skip",
        )

    def _fan_out(self, step: StepSpec, key: str, ids: JournalSlots) -> None:
        """Run one unit per item, each with its own journal slots and, for its asks, its own processes and threads."""
        reserved = ids.record(f"{step.id}: reserve", lambda _: self._beginning(step, key))
        size, cycles, given = reserved["size"], reserved["cycles"], reserved.get("given", {})
        if cycles != self.state.cycles:
            self._run.services.events.publish(
                Warning(f"step {step.id}: its items keep the cycles it began with: {cycles}")
            )
        context = {**self.state.context(), "cycles": cycles}
        items, concurrency = items_of(step, context)
        needs = needs_of(step, items, context)
        outcomes: dict[int, StepOutcome] = {}
        in_row = ids.with_hook(lambda: self._require_room(step, key, size, cycles))
        work = [
            FanOutItem(self._run, f"{key}.{index}", index, value, in_row.reserve(size))
            for index, value in enumerate(items)
        ]
        askers = [self._asker.fork(item.run, self.state, step, item.value) for item in work]
        states = [self.state.fork() for _ in items]

        def one(item: FanOutItem) -> StepOutcome:
            index, asker = item.index, askers[item.index]
            seen = {**context, step.as_: item.value, "item": item.value, "index": index}
            if step.needs is not None:
                seen[NEEDED] = [_result(other, outcomes[other]) for other in needs[index]]
            failed = [str(items[other]["id"]) for other in needs[index] if outcomes[other].error]
            unit = self._unit(step, item.key, seen, item.ids, asker, states[index], item.run)
            unit = replace(unit, set_state=item.told.become)
            try:
                if str(index) in given:
                    outcomes[index] = item.keep(StepOutcome.of(given[str(index)]))
                else:
                    outcomes[index] = item.outcome(lambda: _skipped_outcome(failed) or carry_out(item.run, unit))
                return outcomes[index]
            finally:
                asker.release()

        done, error = fan_out(work, concurrency, one, needs)
        self.state.join(states)
        if error is None:
            done = [
                merged_back(self._run, step, f"{key}.{index}", outcome, ids.record)
                for index, outcome in enumerate(done)
            ]
        for outcome in done:
            self._absorb(step, outcome)
        if error is not None:
            raise error
        results = [_result(index, outcome) for index, outcome in enumerate(done)]
        errors = [outcome.error for outcome in done if outcome.error]
        self._leave(step, {"results": results, "failed": len(errors)}, errors[0] if errors else "")

    def _beginning(self, step: StepSpec, key: str) -> Json:
        """How many steps an item can record, and with how many cycles. Both are final, because slots must not move.

        ``given``: the outcomes of items that are not repeated, because the parent run did them.
        """
        context = self.state.context()
        results = ItemResults(self._run.services.folder.path)
        found = {
            str(index): results.find(f"{key}.{index}", value) for index, value in enumerate(items_of(step, context)[0])
        }
        given = {index: outcome for index, outcome in found.items() if outcome is not None}
        return {"size": self._bound.unit_records[step.id], "cycles": self.state.cycles, "given": given}

    def _require_room(self, step: StepSpec, key: str, size: int, cycles: int) -> None:
        """Raise `UsageError`, before an item does more, if changed inputs may need more slots than it has."""
        if size < self._bound_with(cycles).unit_records[step.id]:
            top = ":".join(key.partition("/")[0].split(".")[:2])
            raise UsageError(
                f"step {step.id}: with the inputs as changed, its items can take more steps than when they began",
                f"`codex-multi-role fork {self._run.services.folder.run_id} --from {top}` with the same options "
                "repeats them; without the change, `resume` continues them.",
            )

    def _call(
        self,
        run: RunResources,
        unit: Unit,
        inputs: Mapping[str, Any],
        ids: JournalSlots,
        asker: Asker,
        caller: FlowState,
    ) -> StepOutcome:
        name = unit.step.call or ""
        if unit.step.id not in self._bound.called:
            problem = f"{unit.where}: {name} calls itself deeper than {unit.step.max_depth} levels"
            if unit.tolerate:
                return StepOutcome({}, problem)
            raise RoleFailed(problem, "too_deep")
        flow = self._flows.specs[name]
        state = new_state(flow, self.state.goal, flow.resolve_inputs(inputs), unit.context["cycles"])
        state.asks |= caller.asks
        walk = FlowWalk(
            run,
            self._flows,
            state,
            ids,
            asker,
            key=f"{unit.key}/",
            calls=(*self._calls, unit.step.id),
            tolerant=unit.tolerate,
        )
        try:
            end = walk.walk()
        finally:
            caller.asks |= state.asks
            caller.history += state.history
        steps = {name: each.output for name, each in state.steps.items() if each.visits and flow.shows(name)}
        output = {"outcome": end.outcome, "exit_code": end.exit_code, "vars": state.vars, "steps": steps}
        return StepOutcome(output, walk.error, tests=state.latest_tests, handoffs=state.shown_handoffs)

    def _ask_every_role(self, step: StepSpec, ids: JournalSlots) -> None:
        """Ask every role of the catalog, each after those it depends on have answered."""
        dependencies = self._run.catalog.dependencies()
        asks = {
            role: self._asker.question(role, self.state, ids.reserve(self._room_for_ask(role))) for role in dependencies
        }
        needed = {each for needs in dependencies.values() for each in needs}
        latest = self.state.latest_handoffs
        before = {role: latest[role] for role in dependencies if role not in needed and role in latest}
        team = Team(dependencies, self.state.latest_tests)
        answers = team.work(lambda role, handoffs, tests: asks[role](handoffs or before, tests))
        for answer in answers:
            self._absorb(step, StepOutcome({}, answer=answer, tests=answer.tests))
        team.raise_failure()
        declined = [
            f"{each.role} declined: {each.error}" for each in answers if each.error and each.handoff is not None
        ]
        self._leave(step, {"results": [answer.handoff for answer in answers], "declined": declined}, "")

    def _room_for_ask(self, role: str) -> int:
        return steps_per_ask(self._run.catalog.role(role))

    def _absorb(self, step: StepSpec, outcome: StepOutcome) -> None:
        shown = self._flow.shows(step.id)
        self.state.take_handoffs(outcome.handoffs, shown=shown)
        if outcome.tests is not None:
            self.state.latest_tests = outcome.tests
        answer = outcome.answer
        if answer is not None and answer.handoff is not None:
            self.state.absorb_handoff(answer.role, answer.instance, answer.turn, answer.handoff, shown=shown)
        if answer is not None and answer.done and not self.state.finished_by:
            self.state.finished_by = answer.role

    def _announce(self, step: StepSpec, visit: int, place: int) -> None:
        """Publish that a visit begins, with what a fork from there needs: its journal position and the workspace."""
        with self._items_lock:  # items of a resumed fan-out come in parallel
            if self._announced == (step.id, visit):
                return
            tree = self._run.snapshots.take() if place and self._run.settings.changes_workspace else ""
            self._run.services.events.publish(
                StepStarted(f"{self._key}{step.id}", visit, self.state.cycle, place, tree)
            )
            if self._run.services.states is not None and step.state is not None and not self._key:
                self._run.services.states.move(RUN, "", step.state)  # not earlier: a fork from here must still enter it
            self._announced = (step.id, visit)


def _skipped_outcome(failed: list[str]) -> StepOutcome | None:
    """The outcome of an item that needs those that ``failed``; None if none did."""
    return StepOutcome({}, f"not started: it needs {', '.join(failed)}", skipped=True) if failed else None


def _result(index: int, outcome: StepOutcome) -> Json:
    """An item as templates see it."""
    status = "skipped" if outcome.skipped else "failed" if outcome.error else "done"
    own = {"index": index, "status": status, "error": outcome.error}
    return shown(outcome.output, own, is_answer=outcome.answer is not None)
