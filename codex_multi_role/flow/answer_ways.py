"""Whether the steps that follow can use a role's answer: their templates are evaluated before the run continues.

What other steps will leave is unknown by then. An answer is unusable if every way onwards fails with it, whatever that
will be, and not with every other answer as well. The measure is the template engine itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RouteSpec, StepSpec, render
from codex_multi_role.catalog.flow_inputs import resolve_inputs
from codex_multi_role.catalog.flow_spec import step_place, ways_out
from codex_multi_role.catalog.flow_steps import NEEDED
from codex_multi_role.catalog.shown_fields import OF_COPY, OfItem
from codex_multi_role.catalog.step_spec import TEMPLATES
from codex_multi_role.catalog.templates import evaluate, render_text
from codex_multi_role.catalog.unknown_values import Tries, UnknownValue, is_known, tries, with_fields
from codex_multi_role.errors import DefinitionError, UsageError
from codex_multi_role.flow.answer_requirements import Contract, lacking, misused
from codex_multi_role.flow.contracts import Contracts
from codex_multi_role.flow.fan_out_items import items_of, needs_of, step_of_item
from codex_multi_role.flow.result_paths import MAX_CALLS, MAX_ITEMS
from codex_multi_role.flow.result_reads import routes_on_result
from codex_multi_role.flow.state import StepState, new_state, shown_item
from codex_multi_role.reading.json_types import Json
from codex_multi_role.reading.places import Place

MAX_STEPS = 200
"""How many steps are looked at on all ways together."""
Problem = tuple[StepSpec, DefinitionError] | None
"""A step that cannot be taken, and why."""
AtEnd = Callable[["_Way", RouteSpec], Problem]
"""What follows the end of a flow."""


@dataclass(frozen=True)
class AnswerWays:
    """The ways onwards from the steps of the flows that have these ``contracts``."""

    contracts: Contracts

    def expected(self, flow: str, step: StepSpec, role: RoleSpec, context: Mapping[str, Any]) -> ExpectedAnswer:
        """What later steps need of the answer of ``role`` in the step, whose templates see ``context``."""
        unusable = partial(self.problem, flow, step.id, role.name, context)
        return ExpectedAnswer(self.contracts.for_ask(flow, step, role), unusable)

    def problem(self, flow: str, step_id: str, role: str, context: Mapping[str, Any], answer: Json) -> str:
        """Why the steps after this one cannot use the answer of ``role``; empty if they can.

        ``context``: what the templates of the step, or of its item, see.
        """
        if flow not in self.contracts.flows:
            return ""
        step = self.contracts.flows[flow].step(step_id)
        added = (*self.contracts.added, *(OF_COPY if step.isolate else ()))
        answer = {**{name: UnknownValue(name) for name in added}, **answer}
        found = self._problem(flow, step, role, context, answer)
        if found is None or self._problem(flow, step, role, context, UnknownValue("answer")) is not None:
            return ""
        reader, error = found
        return f"step {reader.id} cannot use it: {error.problem or error}"

    def _problem(
        self, name: str, step: StepSpec, role: str, context: Mapping[str, Any], answer: Json | UnknownValue
    ) -> Problem:
        flow, visits = self.contracts.flows[name], context["steps"][step.id]["visits"]
        seen = _left(step, visits) if step.ask == EVERY_ROLE else _seen(flow, step, role, context, answer)
        roles = with_fields({} if step.ask == EVERY_ROLE else context["roles"], {role: answer})
        known = {**context, "steps": {**context["steps"], step.id: seen}, "roles": roles}
        return _Way(self, flow, known, self._callers_go_on, iter(range(MAX_STEPS))).after(step)

    def _callers_go_on(self, way: _Way, end: RouteSpec) -> Problem:
        """What follows in the flows that call this one; nothing follows the run's own."""
        if way.flow.name == self.contracts.name or len(way.passed) >= MAX_CALLS:
            return None
        callers = self.contracts.flows.values()
        calls = ((caller, call) for caller in callers for call in caller.steps if call.call == way.flow.name)
        return _all_fail(way.back_in(*each, end) for each in calls)


@dataclass(frozen=True)
class ExpectedAnswer:
    """What later steps need of an answer. ``unusable``: why they cannot use one; empty if they can."""

    contract: Contract = ()
    unusable: Callable[[Json], str] = lambda _: ""

    def problems(self, answer: Json) -> list[str]:
        """What is wrong with an answer, to be asked again."""
        problem = self.unusable(answer)
        lacks = lacking(self.contract, answer) if problem else []
        return [*misused(self.contract, answer), *(lacks or [problem] if problem else [])]


@dataclass(frozen=True)
class _Way:
    """A way through ``flow`` with the ``context`` of its templates. ``visited``: where it has been since its start.

    ``passed``: the flows that it has left, or from which it was called. ``budget``: yields once for each step that may
    still be looked at.
    """

    ways: AnswerWays
    flow: FlowSpec
    context: Json
    at_end: AtEnd
    budget: Iterator[int]
    visited: frozenset[str] = frozenset()
    passed: tuple[str, ...] = ()

    def after(self, step: StepSpec) -> Problem:
        """What fails on every way that leads on from the work of ``step``."""
        place = self._place(step)
        found = tries(partial(render, step.set, self.context, place / "set"))
        if found.failure is not None:
            return step, found.failure
        unknown = {name: UnknownValue(f"vars.{name}") for name in step.set}
        before, new = self.context["vars"], found.only or unknown  # of a flow that called, nothing is known before
        way = self._with(vars={**before, **new} if isinstance(before, dict) else with_fields(before, new))
        return _all_fail(way._routes(step, place / "next"))

    def _routes(self, step: StepSpec, place: Place) -> Iterator[Problem]:
        """The problem of each way that may be taken; of the last one, if it is certain."""
        for number, route in enumerate(ways_out(self.flow, self.flow.steps.index(step))):
            holds = Tries[bool](True)
            if route.when is not None:
                holds = tries(partial(evaluate, route.when, self.context, place / number / "when"))
            if holds.failure is not None:
                yield step, holds.failure
                return
            if holds.only is not False:
                yield self.at_end(self, route) if route.to is None else self._enter(self.flow.step(route.to))
            if holds.only is True:
                return

    def _enter(self, step: StepSpec) -> Problem:
        visits = self.context["steps"][step.id]["visits"]
        is_used_up = step.limits.visits is not None and visits >= step.limits.visits
        if step.id in self.visited or is_used_up or next(self.budget, None) is None:
            return None
        steps = {**self.context["steps"], step.id: _left(step, visits + 1)}
        asked = {role: UnknownValue(f"roles.{role}") for role in step.asked}
        is_any = step.call is not None or step.ask == EVERY_ROLE
        roles = UnknownValue("roles") if is_any else with_fields(self.context["roles"], asked)
        way = replace(self, visited=self.visited | {step.id})
        is_last = self.ways.contracts.may_finish(step)  # nothing certainly follows
        return way._work(step) or (None if is_last else way._with(steps=steps, roles=roles).after(step))

    def _work(self, step: StepSpec) -> Problem:
        """What fails when the step is filled in."""
        if step.for_each is None:
            return self._unit(step, self.context)
        fan_out, place = step.for_each, self._place(step) / "for_each"
        listed = tries(partial(render, fan_out.items, self.context, place / "items"))
        if listed.only is None or isinstance(listed.only, UnknownValue):
            return _problem(step, listed.failure)
        failure = tries(partial(items_of, fan_out, self.context, place)).failure
        failure = failure or tries(partial(needs_of, fan_out, listed.only, self.context, place)).failure
        if failure is not None:
            return step, failure
        items = (
            {**self.context, fan_out.as_: item, "item": item, "index": index, NEEDED: UnknownValue(NEEDED)}
            for index, item in enumerate(listed.only[:MAX_ITEMS])
        )
        return next(filter(None, (self._unit(step, item) for item in items)), None)

    def _unit(self, step: StepSpec, context: Json) -> Problem:
        place = self._place(step)
        filled: dict[str, Tries[Any]] = {
            key: tries(partial(render_text if key in ("prompt", "review") else render, text, context, place / path))
            for key, path in TEMPLATES.items()
            if (text := step.template(key)) is not None
        }
        chosen = tries(partial(step_of_item, step, context, place))
        failures = ((step, each.failure) for each in (*filled.values(), chosen) if each.failure is not None)
        given = filled["with"].only if step.call is not None else None
        return next(failures, self._called(step, given) if given is not None else None)

    def _called(self, step: StepSpec, given: Json) -> Problem:
        """What fails in the flow that the step calls because of its inputs."""
        flow = self.ways.contracts.flows[step.call or ""]
        if flow.name in self.passed or len(self.passed) >= MAX_CALLS:
            return None
        known = {name: spec for name, spec in flow.inputs.items() if is_known(given.get(name))}
        try:
            inputs = resolve_inputs(flow.name, known, {name: each for name, each in given.items() if is_known(each)})
        except UsageError as error:
            return step, (self._place(step) / "with").error(str(error), error.hint)
        inputs |= {name: each for name, each in given.items() if not is_known(each)}
        start = tries(lambda: new_state(flow, self.context["goal"], inputs, self.context["cycles"]))
        if start.only is None:
            return _problem(step, start.failure)
        passed = (*self.passed, self.flow.name)
        way = _Way(self.ways, flow, start.only.context(), lambda _way, _end: None, self.budget, passed=passed)
        return way._enter(flow.steps[0])

    def back_in(self, caller: FlowSpec, call: StepSpec, end: RouteSpec) -> Problem:
        """What fails in the calling flow after this way's end."""
        if end.exit and not (routes_on_result(call) or "bad" in call.allow):
            return None
        own = {name: each for name, each in self.context["steps"].items() if self.flow.shows(name)}
        result = {"outcome": UnknownValue("outcome"), "exit_code": end.exit or 0, "vars": self.context["vars"]}
        context: Json = {name: UnknownValue(name) for name in ("goal", "inputs", "cycle", "cycles", "vars")}
        steps = {step.id: _left(step, UnknownValue("visits")) for step in caller.steps}
        seen = _seen(caller, call, "", {**context, "steps": steps}, {**result, "steps": own})
        context |= {"steps": {**steps, call.id: seen}, "roles": self.context["roles"]}
        passed = (*self.passed, self.flow.name)
        return _Way(self.ways, caller, context, self.at_end, self.budget, passed=passed).after(call)

    def _with(self, **values: Any) -> _Way:  # noqa: ANN401 - values of templates
        return replace(self, context={**self.context, **values})

    def _place(self, step: StepSpec) -> Place:
        return step_place(self.flow, self.flow.steps.index(step))


def _problem(step: StepSpec, failure: DefinitionError | None) -> Problem:
    return None if failure is None else (step, failure)


def _all_fail(problems: Iterator[Problem]) -> Problem:
    """The first of the problems if there is one on each way."""
    first = next(problems, None)
    return first if first is not None and all(each is not None for each in problems) else None


def _left(step: StepSpec, visits: object) -> UnknownValue:
    """What another visit of the step will leave."""
    return UnknownValue(f"steps.{step.id}", {"visits": visits})


def _seen(flow: FlowSpec, step: StepSpec, role: str, context: Mapping[str, Any], answer: Json | UnknownValue) -> object:
    """The step as templates see it once it has this answer, or this result of a call; of other items nothing is known.

    ``context``: of its templates, or of those of its item.
    """
    visits = context["steps"][step.id]["visits"]
    if (fan_out := step.for_each) is None:
        if isinstance(answer, UnknownValue):
            return with_fields(answer, {"visits": visits, "status": "done", "error": ""})
        return StepState(step.ask is not None, visits, "done", output=answer).seen()
    index = context.get("index", 0)
    own: OfItem = {"index": index, "status": "done", "error": ""}
    if step.roles:
        own["role"] = role
    if isinstance(answer, UnknownValue):
        item: object = with_fields(answer, own)
    else:
        item = shown_item(answer, own, is_answer=step.ask is not None, bad=False)
    place = step_place(flow, flow.steps.index(step)) / "for_each"
    listed = tries(lambda: items_of(fan_out, context, place)[0]).only
    others = [UnknownValue(f"results[{number}]") for number in range(len(listed or [item]))]
    results = [*others[:index], item, *others[index + 1 :]]
    by_role = UnknownValue("by_role", {role: item})
    return with_fields(_left(step, visits), {"status": "done", "results": results, "by_role": by_role})
