"""Maximum visits of each step of a flow, and whether its loops end at all. Only the routes are read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile

from codex_multi_role.catalog import FlowSpec, RouteSpec, StepSpec
from codex_multi_role.catalog.flow_spec import step_place, ways_out
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.conditions import Meanings, known_truth, limits_in, names_compared


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
    ways, reached = _reachable(flow, list(_transitions(flow, meanings)))
    loops = _loops(ways)
    limits, endless = _limits(ways, loops)
    if endless:
        raise _unbounded(flow, endless, meanings)
    unlimited = {step_id: 1 + sum(limits.get(other, 0) for other in loop) for step_id, loop in loops.items()}
    return {step.id: int(step.id in reached) for step in flow.steps} | unlimited | limits


def _reachable(flow: FlowSpec, ways: Collection[Transition]) -> tuple[list[Transition], set[str]]:
    """The transitions, and the steps, that a walk can reach."""
    reached: set[str] = set()
    waiting = [flow.steps[0].id]
    while waiting:
        if (step_id := waiting.pop()) not in reached:
            reached.add(step_id)
            waiting += [way.target for way in ways if way.origin == step_id]
    return [way for way in ways if way.origin in reached], reached


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
    reached: dict[str, set[str]] = {}
    for way in ways:
        reached.setdefault(way.origin, set()).add(way.target)
    for middle, further in reached.items():
        for targets in reached.values():
            targets.update(further if middle in targets else ())
    return {
        step_id: {other for other in targets if step_id in reached.get(other, ())}
        for step_id, targets in reached.items()
        if step_id in targets
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
    """``max_visits``, or the visit at which an ``end`` is certain, because no ``to`` precedes it."""
    limits: list[float] = [math.inf if step.max_visits is None else step.max_visits]
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
        f'Add `max_visits: N` to {named[0]}, or guard every way back to it with `when: "{condition}"`. '
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
