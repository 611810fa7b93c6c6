"""What a run can come to at most, and whether its flow ends at all. Nothing is run: the routes are read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RoleSpecCatalog, Route, StepSpec
from codex_multi_role.errors import DefinitionError

if TYPE_CHECKING:
    from jinja2 import nodes

# What a name stands for: the value of ("inputs", "target"), or another name.
Meanings = Mapping[object, object]

_MIRRORED = {"lt": "gt", "lteq": "gteq", "gt": "lt", "gteq": "lteq", "eq": "eq"}


@dataclass(frozen=True)
class WorstCase:
    """``turns`` without repairs; ``processes``: one a role asked; ``seconds``: one turn at a time, all timed out."""

    turns: int
    repair_turns: int
    processes: int
    seconds: float


@dataclass(frozen=True)
class Way:
    """A way from step to step. ``limit``: the most visits ``target`` has had once it was taken; may be infinite."""

    origin: str
    target: str
    limit: float


def worst_case(
    flow: FlowSpec,
    catalog: RoleSpecCatalog,
    *,
    cycles: int,
    repair_attempts: int,
    inputs: Mapping[str, object] | None = None,
) -> WorstCase:
    """Upper bounds for a run of a loaded flow. ``inputs``: the values the run is given; the others are the defaults.

    Raises ``DefinitionError`` naming the loop when one is not bounded.
    """
    visits = most_visits(flow, cycles=cycles, inputs=inputs)
    asked = [(visits[step.id], role) for step in flow.steps for role in _roles_asked(step, catalog)]
    turns = sum(times for times, _ in asked)
    seconds = sum(times * role.limits.turn_seconds for times, role in asked) * (1 + repair_attempts)
    return WorstCase(turns, turns * repair_attempts, len({role.name for _, role in asked}), float(seconds))


def most_visits(flow: FlowSpec, *, cycles: int, inputs: Mapping[str, object] | None = None) -> dict[str, int]:
    """How often each step can be visited at most. Raises ``DefinitionError`` naming a loop that is not bounded.

    A step without a limit is visited once at first, and once after each visit of the limited steps of its loop.
    """
    values = {name: each.default for name, each in flow.inputs.items()} | dict(inputs or {})
    meanings: dict[object, object] = {("inputs", name): value for name, value in values.items()}
    meanings |= {("cycles",): cycles, ("cycle",): ("steps", flow.steps[0].id, "visits")}
    ways = list(_ways(flow, meanings))
    loops = _loops(ways)
    limits = _limits(flow, ways, loops)
    unlimited = {step_id: 1 + sum(limits.get(other, 0) for other in loop) for step_id, loop in loops.items()}
    return {step.id: 1 for step in flow.steps} | unlimited | limits


def _roles_asked(step: StepSpec, catalog: RoleSpecCatalog) -> tuple[RoleSpec, ...]:
    if step.ask == EVERY_ROLE:
        return catalog.roles
    return () if step.ask is None else (catalog.role(step.ask),)


def _limits(flow: FlowSpec, ways: list[Way], loops: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Take the limited steps out until no loop is left; those within a loop appear when its limited steps are out.

    An inner loop can be entered anew after each visit of a step taken out before, whatever its own ways say.
    """
    limits: dict[str, int] = {}
    while inner := _loops(left := [way for way in ways if not {way.origin, way.target} & limits.keys()]):
        found = {}
        for step_id, loop in inner.items():
            limit = max(way.limit for way in left if way.target == step_id and way.origin in loop)
            if limit < math.inf:
                found[step_id] = int(limit) + sum(limits.get(other, 0) for other in loops[step_id])
        if not found:
            raise _unbounded(flow, left)
        limits |= found
    return limits


def _loops(ways: Collection[Way]) -> dict[str, set[str]]:
    """Of every step that can reach itself: the steps that it reaches and that reach it."""
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


def _unbounded(flow: FlowSpec, ways: Collection[Way]) -> DefinitionError:
    order = [step.id for step in flow.steps]
    try:
        TopologicalSorter({to: [way.origin for way in ways if way.target == to] for to in order}).prepare()
    except CycleError as error:
        loop: list[str] = error.args[1][:-1]
    start = loop.index(min(loop, key=order.index))
    named = [*loop[start:], *loop[: start + 1]]
    condition = "cycle < cycles" if named[0] == order[0] else f"steps['{named[0]}'].visits < 5"
    return DefinitionError(
        f"{flow.source}: steps: nothing bounds the loop {' -> '.join(named)}",
        f'Give {named[0]} a max_visits, or take every way back to it only when "{condition}". '
        "A limit is a number, cycles, or an input that has a value.",
    )


def _ways(flow: FlowSpec, meanings: Meanings) -> Iterator[Way]:
    """Every ``to`` and every fall-through. An entry is reached only where the entries before it do not hold."""
    own = {step.id: _own_limit(step, meanings) for step in flow.steps}
    for index, step in enumerate(flow.steps):
        for number, route in enumerate(routes := _routes(flow, index)):
            if route.to is not None:
                limits = [own[route.to], *_limits_in(route.when, "and", {"lt", "lteq"}, route.to, meanings)]
                for earlier in routes[:number]:
                    limits += _limits_in(earlier.when, "or", {"gteq", "gt"}, route.to, meanings)
                yield Way(step.id, route.to, min(limits))


def _routes(flow: FlowSpec, index: int) -> tuple[Route, ...]:
    routes = flow.steps[index].next
    if routes and routes[-1].when is None:
        return routes
    return (*routes, *(Route(to=step.id) for step in flow.steps[index + 1 : index + 2]))


def _own_limit(step: StepSpec, meanings: Meanings) -> float:
    """``max_visits``, or the visit at which an ``end`` is reached for certain: no ``to`` comes before it."""
    limits: list[float] = [math.inf if step.max_visits is None else step.max_visits]
    for route in takewhile(lambda each: each.to is None, step.next):
        limits += _limits_in(route.when, "or", {"gteq", "gt", "eq"}, step.id, meanings)
    return min(limits)


def _limits_in(
    when: str | None, joined_by: Literal["and", "or"], signs: Collection[str], step_id: str, meanings: Meanings
) -> Iterator[int]:
    """The most visits of a step, by each comparison of their number with a number that is known."""
    for left, sign, right in _comparisons(when, joined_by) if when else ():
        count, number = meanings.get(left, left), meanings.get(right, right)
        if count != ("steps", step_id, "visits") or sign not in signs:
            continue
        # What no number of visits can equal is no limit: 2.5 for ==, or 1e999.
        if isinstance(number, int | float) and abs(number) < math.inf and (sign != "eq" or 1 <= number == int(number)):
            yield max(1, math.floor(number) + 1 if sign in ("lteq", "gt") else math.ceil(number))


def _comparisons(when: str, joined_by: Literal["and", "or"]) -> Iterator[tuple[object, str, object]]:
    """The comparisons that all hold if ``when`` does ("and"), or that each suffice for it ("or"), read both ways."""
    from jinja2 import Environment, nodes
    from jinja2.parser import Parser

    waiting: list[nodes.Expr] = [Parser(Environment(), when, state="variable").parse_expression()]
    while waiting:
        part = waiting.pop()
        if isinstance(part, nodes.And if joined_by == "and" else nodes.Or):
            waiting += [part.left, part.right]
        elif isinstance(part, nodes.Compare) and len(part.ops) == 1:
            left, sign, right = _value(part.expr), part.ops[0].op, _value(part.ops[0].expr)
            yield from [(left, sign, right), (right, _MIRRORED.get(sign, ""), left)]


def _value(node: nodes.Node) -> object:
    """A constant's value; the parts of a name, the same for ``steps.plan`` and ``steps["plan"]``; otherwise None."""
    from jinja2 import nodes

    match node:
        case nodes.Const(value=value):
            return value
        case nodes.Name(name=name):
            return (name,)
        case nodes.Getattr(node=owner, attr=key) | nodes.Getitem(node=owner, arg=nodes.Const(value=key)):
            parts = _value(owner)
            return (*parts, key) if isinstance(parts, tuple) else None
    return None
