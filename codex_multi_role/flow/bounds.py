"""Upper bounds of a run, and whether its flows end at all. Nothing is run: only the definitions are read.

The visits of a step follow from the routes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile

from codex_multi_role.catalog import FlowSpec, RoleSpec, RoleSpecCatalog, RouteSpec, StepSpec
from codex_multi_role.catalog.flow_spec import reached, step_place, steps_below, ways_out
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.conditions import (
    Meanings,
    depth_of,
    known_inputs,
    known_truth,
    limits_in,
    may_call,
    meanings_of,
    names_compared,
)
from codex_multi_role.flow.effort import Effort, StepEfforts, Terms
from codex_multi_role.reading.places import Place
from codex_multi_role.run_options import PROVIDER_ATTEMPTS

MOST_RECORDS = 10**12
"""A flow that may need more journal steps counts as unbounded."""
MOST_RECORDS_OF_AN_ITEM = 20_000
"""Journal slots are reserved for every item of a fan-out before any of them starts."""
MOST_DEPTH = 100
MOST_SITUATIONS = 10_000
"""Maximum number of different ways to call a flow that are examined."""


@dataclass(frozen=True)
class WorstCase:
    """Upper bounds of one session of a run; a session after a failure repeats once what failed.

    ``turns`` exclude ``repair_turns``. ``prompts``: each of both is sent again if the provider fails, at most
    `PROVIDER_ATTEMPTS` times in all. ``processes`` at once. ``records``: journal steps of all flows together.
    ``seconds``: every deadline passes, and only the items of a fan-out run in parallel; ``seconds_one_by_one``: nothing
    does. Both exclude what has no deadline: reviews without a time limit, a person who is asked within a turn, the
    start of processes, and brief work such as merging.
    """

    turns: int
    repair_turns: int
    prompts: int
    processes: int
    seconds: float
    seconds_one_by_one: float
    records: int

    def within(self, *, turns: int | None = None, processes: int | None = None) -> WorstCase:
        """The bounds that remain with ``--max-turns``, which counts prompts, and with ``--max-processes``.

        Fewer processes take more time. While any of them is idle, no turn waits, and work is as fast as without the
        limit. All of them are busy for at most the duration of all work, divided by their number.
        """
        left = self
        if turns is not None:
            most = {"turns": turns, "repair_turns": turns - 1, "prompts": turns}
            left = replace(left, **{name: min(getattr(left, name), number) for name, number in most.items()})
        if processes is not None and processes < self.processes:
            seconds = min(self.seconds_one_by_one, self.seconds + self.seconds_one_by_one / processes)
            left = replace(left, processes=processes, seconds=seconds)
        return left


@dataclass(frozen=True)
class WalkBound:
    """Upper bounds of one walk of a flow, from where it is called.

    ``unit_records``: by step ID, the most journal steps of the step, or of one item of its fan-out; a step that the
    inputs rule out is missing. ``called``: by step ID, the walk that the step's call starts; missing if its
    ``limits.depth`` is reached and nothing is started.
    """

    effort: Effort
    unit_records: Mapping[str, int]
    called: Mapping[str, WalkBound]


def worst_case(
    flows: Mapping[str, FlowSpec],
    name: str,
    catalog: RoleSpecCatalog,
    terms: Terms,
    inputs: Mapping[str, object] | None = None,
) -> WorstCase:
    """Upper bounds of a run of the flow ``name`` of ``flows`` (see `load_flows`); raises what `walk_bound` raises."""
    effort = walk_bound(flows, name, catalog, terms, inputs).effort
    turns, repair_turns = effort.turns + effort.continued, effort.turns * terms.repair_attempts
    before = _seconds_of_baseline(flows, name, [role for role in catalog.roles if role.name in effort.processes], terms)
    return WorstCase(
        turns=turns,
        repair_turns=repair_turns,
        prompts=(turns + repair_turns) * PROVIDER_ATTEMPTS,
        processes=effort.processes.total(),
        seconds=effort.seconds + before,
        seconds_one_by_one=effort.one_by_one + before,
        records=effort.records,
    )


def _seconds_of_baseline(flows: Mapping[str, FlowSpec], name: str, roles: Sequence[RoleSpec], terms: Terms) -> float:
    """The tests before the first turn: in the workspace, and once in a copy of it if steps work in copies."""
    steps = steps_below(flows, name)
    is_tested = bool(terms.test_seconds) or any(step.check == "tests" for step in steps)
    if not is_tested or not any(role.may_change_workspace for role in roles):
        return 0.0
    return terms.baseline_seconds * (2 if any(step.isolate for step in steps) else 1)


def walk_bound(
    flows: Mapping[str, FlowSpec],
    name: str,
    catalog: RoleSpecCatalog,
    terms: Terms,
    inputs: Mapping[str, object] | None = None,
) -> WalkBound:
    """The bounds of a run of ``name`` and, within them, of every walk it can start.

    ``inputs``: the values given to the run; the others have their defaults, and are unknown without one. Raises
    ``DefinitionError`` naming a loop without a bound, a call that never ends, a fan-out whose items may record too
    much, or a step whose check does not exist.
    """
    known = {key: spec.default for key, spec in flows[name].inputs.items() if not spec.required}
    return _Walks(flows, catalog, terms).bound(name, known | dict(inputs or {}), (), None)


class _Walks:
    """Bounds of walks, each computed once: they depend on the flow, its known inputs, and the depth of its call."""

    def __init__(self, flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, terms: Terms) -> None:
        self._flows = flows
        self._catalog = catalog
        self._terms = terms
        self._counted = {step.call for flow in flows.values() for step in flow.steps if step.call and depth_of(step)}
        self._found: dict[object, WalkBound] = {}

    def bound(self, name: str, inputs: Mapping[str, object], callers: Sequence[str], place: Place | None) -> WalkBound:
        """The walk of ``name``, called by the last of ``callers`` at ``place``; without callers it is the run's own."""
        call_stack = (*callers, name)
        depths = {each: call_stack.count(each) for each in sorted(self._counted & {*call_stack})}
        situation = (name, repr(sorted(inputs.items())), repr(depths))
        if situation not in self._found:
            if place and (len(call_stack) > MOST_DEPTH or len(self._found) >= MOST_SITUATIONS):
                raise place.error("the calls go too deep to be counted", "Lower limits.depth.")
            self._found[situation] = self._bound(self._flows[name], inputs, call_stack, place)
        return self._found[situation]

    def _bound(
        self, flow: FlowSpec, inputs: Mapping[str, object], call_stack: Sequence[str], place: Place | None
    ) -> WalkBound:
        meanings = meanings_of(flow, self._terms.cycles, inputs)
        efforts = StepEfforts(self._catalog, self._terms, meanings)
        visits = _visits(flow, meanings, place)
        whole = Effort()
        records: dict[str, int] = {}
        called: dict[str, WalkBound] = {}
        for index, step in enumerate(flow.steps):
            if not visits[step.id]:
                continue
            here = step_place(flow, index)
            if step.call is not None and may_call(step, call_stack):
                given = known_inputs(step, self._flows[step.call], meanings, here)
                called[step.id] = self.bound(step.call, given, call_stack, here)
            inner = called[step.id].effort if step.id in called else None
            unit = efforts.of_unit(step, inner, here)
            records[step.id] = _records_of_unit(step, unit, here)
            whole = whole.then(efforts.of_visit(step, unit, here).repeated(visits[step.id]))
        for step, at_end in flow.final_checks:
            whole = whole.then(efforts.of_unit(step, None, at_end))
        return WalkBound(_within_reason(whole, flow), records, called)


def _visits(flow: FlowSpec, meanings: Meanings, place: Place | None) -> dict[str, int]:
    try:
        return most_visits(flow, meanings)
    except DefinitionError as error:
        called = f" (called at {place})" if place else ""
        raise DefinitionError(f"{error}{called}", error.hint, error.file, error.position) from error


def _records_of_unit(step: StepSpec, unit: Effort, place: Place) -> int:
    if step.for_each is not None and unit.records > MOST_RECORDS_OF_AN_ITEM:
        raise place.error(
            f"an item may record {unit.records:,} steps, {MOST_RECORDS_OF_AN_ITEM:,} are the most",
            "Bound the called flow more tightly: cycles, limits.visits, max_items, limits.depth.",
        )
    return unit.records


def _within_reason(effort: Effort, flow: FlowSpec) -> Effort:
    if effort.records > MOST_RECORDS:
        raise Place(flow.source, ("steps",)).error(
            f"a run may need more than {MOST_RECORDS:,} recorded steps",
            "Lower max_items, limits.depth, limits.visits or attempts.",
        )
    return effort


@dataclass(frozen=True)
class Transition:
    """A transition between steps. ``limit``: the most visits of ``target`` once it was taken; may be infinite."""

    origin: str
    target: str
    limit: float


def most_visits(flow: FlowSpec, meanings: Meanings) -> dict[str, int]:
    """The maximum visits of each step. Raises ``DefinitionError`` naming a loop without a bound.

    A step without a limit is visited once at first, and once after each visit of the limited steps of its loop. It is
    never visited if all transitions to it are known never to be taken. ``meanings``: see `conditions.meanings_of`.
    """
    ways, visited = _reachable(flow, list(_transitions(flow, meanings)))
    loops = _loops(ways)
    limits, endless = _limits(ways, loops)
    if endless:
        raise _unbounded(flow, endless, meanings)
    unlimited = {step_id: 1 + sum(limits.get(other, 0) for other in loop) for step_id, loop in loops.items()}
    return {step.id: int(step.id in visited) for step in flow.steps} | unlimited | limits


def _reachable(flow: FlowSpec, ways: Collection[Transition]) -> tuple[list[Transition], set[str]]:
    """The transitions, and the steps, that a walk can reach."""
    found = {*reached([flow.steps[0].id], _targets(ways))}
    return [way for way in ways if way.origin in found], found


def _targets(ways: Collection[Transition]) -> Callable[[str], Sequence[str]]:
    """The steps to which transitions lead from a step."""
    targets: dict[str, list[str]] = {}
    for way in ways:
        targets.setdefault(way.origin, []).append(way.target)
    return lambda step_id: targets.get(step_id, ())


def _limits(ways: list[Transition], loops: Mapping[str, Collection[str]]) -> tuple[dict[str, int], list[Transition]]:
    """Remove the limited steps until no loop is left; inner loops appear when the limited steps around them are gone.

    An inner loop can be entered again after each visit of a step removed before, whatever its own transitions are. Also
    returns the remaining transitions if they have a loop without a limit.
    """
    limits: dict[str, int] = {}
    while inner := _loops(left := [way for way in ways if not {way.origin, way.target} & limits.keys()]):
        found = {}
        for step_id, loop in inner.items():
            limit = max(way.limit for way in left if way.target == step_id and way.origin in loop)
            if limit < math.inf:
                found[step_id] = int(limit) + sum(limits.get(other, 0) for other in loops[step_id])
        if not found:
            return limits, left
        limits |= found
    return limits, []


def _loops(ways: Collection[Transition]) -> dict[str, set[str]]:
    """For every step that can reach itself: the steps that it reaches and that reach it."""
    targets = _targets(ways)
    further = {way.origin: {*reached(targets(way.origin), targets)} for way in ways}
    return {
        step_id: {other for other in found if step_id in further.get(other, ())}
        for step_id, found in further.items()
        if step_id in found
    }


def _transitions(flow: FlowSpec, meanings: Meanings) -> Iterator[Transition]:
    """Every ``to`` and every fall-through. An entry is reached only if the entries before it do not hold."""
    routes_of = [_possible(ways_out(flow, index), meanings) for index in range(len(flow.steps))]
    own = {step.id: _own_limit(step, routes, meanings) for step, routes in zip(flow.steps, routes_of, strict=True)}
    for step, routes in zip(flow.steps, routes_of, strict=True):
        for number, route in enumerate(routes):
            if route.to is not None:
                limits = [own[route.to], *limits_in(route.when, "and", {"lt", "lteq"}, route.to, meanings)]
                for earlier in routes[:number]:
                    limits += limits_in(earlier.when, "or", {"gteq", "gt"}, route.to, meanings)
                yield Transition(step.id, route.to, min(limits))


def _possible(routes: Sequence[RouteSpec], meanings: Meanings) -> list[RouteSpec]:
    """The routes without those that never hold and without those after one that always does."""
    possible = []
    for route in routes:
        truth = known_truth(route.when, meanings)
        if truth is not False:
            possible.append(route)
        if truth:
            break
    return possible


def _own_limit(step: StepSpec, routes: Sequence[RouteSpec], meanings: Meanings) -> float:
    """``limits.visits``, or the visit at which an ``end`` is certain, because no ``to`` precedes it."""
    limits: list[float] = [math.inf if step.limits.visits is None else step.limits.visits]
    for route in takewhile(lambda each: each.to is None, routes):
        limits += limits_in(route.when, "or", {"gteq", "gt", "eq"}, step.id, meanings)
    return min(limits)


def _unbounded(flow: FlowSpec, ways: Collection[Transition], meanings: Meanings) -> DefinitionError:
    order = [step.id for step in flow.steps]
    try:
        TopologicalSorter({to: [way.origin for way in ways if way.target == to] for to in order}).prepare()
    except CycleError as error:
        loop: list[str] = error.args[1][:-1]
    start = loop.index(min(loop, key=order.index))
    named = [*loop[start:], *loop[: start + 1]]
    place = step_place(flow, order.index(named[0]))
    message = f"can loop forever: {' -> '.join(named)}"
    if unknown := _inputs_missing(flow, meanings):
        return place.error(
            f"{message}; the value of {' and '.join(f'inputs.{name}' for name in unknown)} is not known before the run",
            "Give the input a default, or a value with --input. A calling flow must pass a number, or one whole "
            "{{ … }} known before the run.",
        )
    if counters := _changed_variables_compared(flow, loop):
        message += f"; {' and '.join(counters)} cannot bound a loop: use visits"
    condition = "cycle < cycles" if named[0] == order[0] else f"steps['{named[0]}'].visits < 5"
    return place.error(
        message,
        f'Add `limits: {{visits: N}}` to {named[0]}, or guard every way back to it with `when: "{condition}"`. '
        "N is a number, cycles, or an input that has a value.",
    )


def _changed_variables_compared(flow: FlowSpec, loop: Collection[str]) -> list[str]:
    """The run variables that conditions of the loop compare and that a step sets, such as counters."""
    compared = {
        name for step in flow.steps if step.id in loop for route in step.next for name in names_compared(route.when)
    }
    changed = {name for step in flow.steps for name in step.set}
    return [f"vars.{name}" for name in flow.vars if ("vars", name) in compared and name in changed]


def _inputs_missing(flow: FlowSpec, meanings: Meanings) -> list[str]:
    """The inputs whose values, if known, would bound every loop."""
    compared = {name for step in flow.steps for route in step.next for name in names_compared(route.when)}
    missing = [name for name in flow.inputs if ("inputs", name) in compared - meanings.keys()]
    known: dict[object, object] = {("inputs", name): 1 for name in missing} | dict(meanings)
    ways = list(_transitions(flow, known))
    return [] if _limits(ways, _loops(ways))[1] else missing
