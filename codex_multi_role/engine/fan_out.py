"""A step with ``for_each``: one unit per item, each with its own journal slots, processes and threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import StepSpec
from codex_multi_role.catalog.flow_steps import NEEDED
from codex_multi_role.catalog.step_spec import ForEach
from codex_multi_role.catalog.templates import evaluate
from codex_multi_role.engine.askers import Scope
from codex_multi_role.engine.fan_out_item import FanOutItem, seen_item
from codex_multi_role.engine.journal_slots import Decision, RunHalted
from codex_multi_role.engine.scheduler import Scheduler
from codex_multi_role.engine.step_limit import has_limit, outcome_of
from codex_multi_role.errors import ChangeRefused, DefinitionError, RunStatus, ending_for
from codex_multi_role.flow import items_of, name_of, needs_of
from codex_multi_role.flow.fan_out_items import content_of_item, step_of_item, title_of
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place
from codex_multi_role.run_folder.events import Warning
from codex_multi_role.run_folder.items import ItemResults
from codex_multi_role.run_folder.questions import Questions
from codex_multi_role.steps import StepOutcome, Unit, merge_failure, merged_back, step_failure

UnitMaker = Callable[[StepSpec, str, Mapping[str, Any], Scope], Unit]
"""Makes the unit of a step from its key, the context of its templates, and its scope."""


class FanOut:
    """One visit of the step with this ``key``. ``records(cycles)``: how many slots an item can need."""

    def __init__(
        self,
        scope: Scope,
        step: StepSpec,
        fan_out: ForEach,
        key: str,
        place: Place,
        unit: UnitMaker,
        records: Callable[[int], int],
    ) -> None:
        self._scope, self._step, self._key, self._unit, self._records = scope, step, key, unit, records
        self._place, self._where, self._fan_out = place, place / "for_each", fan_out
        self._roles: list[str] = []
        self._outcomes: dict[int, StepOutcome] = {}
        self._cancelled: set[int] = set()
        self._first_failure: RunHalted | None = None

    def outcomes(self) -> tuple[list[StepOutcome], BaseException | None]:
        """The available outcomes in item order, merged if all ended, and the first failure."""
        step, fan_out, scope = self._step, self._fan_out, self._scope
        with scope.ids.record(f"{step.id}: reserve") as visit:
            if visit.is_due:
                visit.result = self._reserve()
        reserved = visit.result
        if problem := reserved.get("problem"):  # of an earlier version, which recorded it as a result
            raise RunHalted(ending_for(DefinitionError(problem)))
        context = self._context_with(reserved["cycles"])
        values, concurrency = items_of(fan_out, context, self._where)
        needs = needs_of(fan_out, values, context, self._where)
        seen = [{**context, fan_out.as_: each, "item": each, "index": index} for index, each in enumerate(values)]
        steps = [self._step_of_item(each) for each in seen]
        self._roles = [(each.ask or "") if step.roles and not each.roles else "" for each in steps]
        decision = scope.ids.decision(f"{step.id}: until") if fan_out.until is not None else None
        decided = decision.find() if decision is not None else None
        self._cancelled = set(decided["cancelled"]) if decided is not None else set()
        items = self._items(values, reserved, steps, seen)
        scopes = [item.scope(scope.state.fork()) for item in items]

        def work(item: FanOutItem) -> StepOutcome:
            own = dict(seen[item.index])
            if fan_out.needs is not None:
                own[NEEDED] = [seen_item(other, self._outcomes[other]) for other in needs[item.index]]
            failed = [str(values[other]["id"]) for other in needs[item.index] if not self._suffices(other)]
            unit = self._unit(step, item.key, own, scopes[item.index])
            peers = min(concurrency, len(values))
            unit = replace(unit, step=steps[item.index], set_state=item.states.become, peers=peers)
            unit = replace(unit, tolerate=unit.tolerate or fan_out.until is not None)
            return self._carry_out(item, unit, reserved["given"].get(str(item.index)), failed)

        def is_last(_: StepOutcome) -> bool:
            return decision is not None and decided is None and self._decide(decision, items, context)

        cancel_rest = partial(self._cancel_rest, items) if scope.ids.keeps_failures else None
        scheduler = Scheduler[StepOutcome]("item", concurrency, needs, is_last, cancel_rest)
        done, error = scheduler.run([partial(self._watched, work, item, items) for item in items])
        for index in sorted(self._cancelled):
            self._outcomes[index] = items[index].outcome(_not_needed)
            scope.run.services.worktrees.discard(items[index].key)
            self._close_questions(items[index])
        scope.state.join([each.state for each in scopes])
        if error is not None and len(self._outcomes) < len(items):
            return done, self._first_failure or error
        return self._merged(items, [self._outcomes[item.index] for item in items])

    def _decide(self, decision: Decision, items: Sequence[FanOutItem], context: Json) -> bool:
        """Whether the condition holds for the results so far. If so, cancel the other items, once that is recorded."""
        if self._cancelled:
            return True
        ended = sorted(self._outcomes)
        results = [seen_item(index, self._outcomes[index], self._roles[index]) for index in ended]
        if not _holds(self._fan_out, context, results, self._where)[0]:
            return False
        self._cancelled = {item.index for item in items} - {*ended}
        decision.record({"cancelled": sorted(self._cancelled)})
        for index in self._cancelled:
            items[index].cancel(NOT_NEEDED)
        return True

    def _cancel_rest(self, items: Sequence[FanOutItem]) -> None:
        """The fan-out has failed, and its caller tolerates that: what has not ended never will."""
        for item in items:
            if item.index not in self._outcomes:
                item.cancel(OTHER_FAILED)
                self._close_questions(item)

    def _close_questions(self, item: FanOutItem) -> None:
        closed = Questions(self._scope.run.services.folder.path).close_within(item.key)
        self._scope.run.progress.waits_for.difference_update(closed)

    def _watched(
        self, work: Callable[[FanOutItem], StepOutcome], item: FanOutItem, items: Sequence[FanOutItem]
    ) -> StepOutcome:
        """The outcome of the work, unless the item is no longer needed. Its failure may cancel the others."""
        if item.index in self._cancelled:
            return _not_needed()
        try:
            return work(item)
        except RunHalted as halt:
            if item.index in self._cancelled:
                return _not_needed()
            if self._fan_out.on_failure == "cancel" and halt.ending.status == RunStatus.FAILED:
                if self._scope.ids.keeps_failures and halt.ending.is_of_step:
                    self._cancel_rest(items)
                    raise
                self._first_failure = self._first_failure or halt
                for other in items:
                    other.run.progress.stopping.set()
            raise

    def _step_of_item(self, seen: Json) -> StepSpec:
        """With the role that the item asks; unchanged if the role is not on the list, so that the item fails."""
        with suppress(DefinitionError):
            return step_of_item(self._step, seen, self._place)
        return self._step

    def _suffices(self, index: int) -> bool:
        """Whether items that need this one can start."""
        outcome = self._outcomes[index]
        return outcome.is_good or (not outcome.error and "bad" in self._step.allow)

    def _reserve(self) -> Json:
        """How many steps an item can record, and with how many cycles. Both are final, because slots must not move.

        ``given``: the outcomes of items that are not repeated, because the parent run did them.
        """
        if has_limit(self._step):
            self._scope.run.after_baseline()  # which does not count as time of an item
        state = self._scope.state
        results = ItemResults(self._scope.run.services.folder.path, given=True)
        context = state.context()
        try:
            values, _ = items_of(self._fan_out, context, self._where)
            needs_of(self._fan_out, values, context, self._where)
        except DefinitionError as error:
            raise step_failure(error, self._key, context, self._place, self._fan_out.items) from error
        found = {str(index): results.find(f"{self._key}.{index}", value) for index, value in enumerate(values)}
        given = {index: outcome for index, outcome in found.items() if outcome is not None}
        return {"size": self._records(state.cycles), "cycles": state.cycles, "given": given}

    def _context_with(self, cycles: int) -> Json:
        state = self._scope.state
        if cycles != state.cycles:
            kept = f"step {self._step.id}: its items keep the cycles it started with: {cycles}"
            self._scope.run.services.events.publish(Warning(kept))
        return {**state.context(), "cycles": cycles}

    def _items(
        self, values: Sequence[Any], reserved: Json, steps: Sequence[StepSpec], seen: Sequence[Json]
    ) -> list[FanOutItem]:
        """All items, with their slots and numbers drawn in item order."""
        scope, step, size = self._scope, self._step, reserved["size"]
        row = scope.ids.with_hook(lambda: self._require_room(size, reserved["cycles"]))
        own_slots = size + has_limit(self._step)
        contents = [content_of_item(step, value) for value in values]
        items = [
            FanOutItem(scope, steps[index], f"{self._key}.{index}", index, value, content, row.reserve(own_slots))
            for index, (value, content) in enumerate(zip(values, contents, strict=True))
        ]
        if scope.run.services.states is not None:
            scope.run.services.states.begin(
                {
                    each.key: (name_of(each.value, each.index), title_of(step, seen[each.index], each.value))
                    for each in items
                }
            )
        return items

    def _require_room(self, size: int, cycles: int) -> None:
        """Raise `ChangeRefused`, before an item does more, if changed inputs may need more slots than it has."""
        if size < self._records(cycles):
            top = ":".join(self._key.partition("/")[0].split(".")[:2])
            raise ChangeRefused(
                f"step {self._step.id}: with the changed inputs, its items can take more steps than when they started",
                f"`codex-multi-role fork RUN --from {top}` with the same options repeats them; without the change, "
                "`codex-multi-role resume RUN` continues them.",
            )

    def _carry_out(self, item: FanOutItem, unit: Unit, given: Json | None, failed: Sequence[str]) -> StepOutcome:
        """The outcome of one item: ``given`` by the parent run, skipped if those that it needs ``failed``, or new."""
        try:
            if given is not None:
                outcome = item.keep(StepOutcome.of(given))
            else:
                work = partial(item.limit.outcome, partial(outcome_of, item.run, unit), tolerate=unit.tolerate)
                skipped = StepOutcome({}, f"not started: it needs {', '.join(failed)}", skipped=True)
                outcome = item.outcome(lambda: skipped if failed else work())
            self._outcomes[item.index] = outcome
            return outcome
        finally:
            item.asker.release()

    def _merged(
        self, items: Sequence[FanOutItem], outcomes: Sequence[StepOutcome]
    ) -> tuple[list[StepOutcome], BaseException | None]:
        """The outcomes after merging the items' copies of the workspace, in item order; and the first failure."""
        run, step, failure = self._scope.run, self._step, None
        merged = []
        for item, outcome in zip(items, outcomes, strict=True):
            merged.append(merged_back(run, step, item.key, outcome, self._scope.ids.record))
            if merged[-1].lost:
                item.fail(merged[-1].error)
                if "failed" not in self._fan_out.allow:
                    failure = failure or merge_failure(run, step, item.key, merged[-1])
        return merged, failure

    def output(self, outcomes: Sequence[StepOutcome]) -> tuple[Json, str, str]:
        """What templates see of the fan-out, the first error, and why the whole is bad: with ``until``, if not met."""
        results = [seen_item(index, outcome, self._roles[index]) for index, outcome in enumerate(outcomes)]
        output: Json = {"results": results, "failed": sum(each["status"] == "failed" for each in results)}
        if self._step.asks_at_once:
            output["by_role"] = dict(zip(self._step.roles, results, strict=True))
        if self._fan_out.until is None:
            errors = [outcome.error for outcome in outcomes if outcome.error and not outcome.skipped]
            return output, errors[0] if errors else "", self._why_bad(outcomes)
        counted = [each for index, each in enumerate(results) if index not in self._cancelled]
        met, why_not = _holds(self._fan_out, self._scope.state.context(), counted, self._where)
        return {**output, "met": met}, "", "" if met else f"until was not met{why_not and f': {why_not}'}"

    def _why_bad(self, outcomes: Sequence[StepOutcome]) -> str:
        """One end of an item that is not allowed is enough; if it is allowed, one good item is enough to be good."""
        allowed = self._fan_out.allow
        counted = [each.bad or (each.error if allowed else "") for each in outcomes]
        bad = [f"{self._key}.{index}: {why}" for index, why in enumerate(counted) if why]
        is_allowed = bool(allowed) and ("bad" in allowed or not any(each.bad for each in outcomes))
        if not bad or (is_allowed and len(bad) < len(outcomes)):
            return ""
        return f"bad items: {len(bad)} of {len(outcomes)}, first {bad[0]}"


NOT_NEEDED = "not needed: the results so far suffice"
OTHER_FAILED = "cancelled: another one failed, and with it the step"


def _not_needed() -> StepOutcome:
    return StepOutcome({}, NOT_NEEDED, skipped=True)


def _holds(fan_out: ForEach, context: Json, results: Sequence[Json], place: Place) -> tuple[bool, str]:
    """Whether ``until`` holds; otherwise why it cannot be evaluated, such as for results without a field that it reads.

    A failed item has no answer, so if the condition needs one, it is about the others.
    """
    problem = ""
    for counted in (results, [each for each in results if each["status"] == "done"]):
        try:
            return evaluate(fan_out.until or "", {**context, "results": counted}, place / "until"), ""
        except DefinitionError as error:
            problem = str(error)
    return False, problem
