"""Where a run goes after a step: the first ``next`` entry whose ``when`` holds, otherwise the following step.

A bad result ends the flow instead, unless the step's own ``next`` decides on it or the step says that it continues.
And how a flow can end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from codex_multi_role.catalog import FlowSpec, RouteSpec, StepSpec
from codex_multi_role.catalog.flow_spec import step_place, ways_out
from codex_multi_role.catalog.templates import evaluate
from codex_multi_role.errors import DefinitionError
from codex_multi_role.flow.result_reads import routes_on_result
from codex_multi_role.flow.state import FlowState


@dataclass(frozen=True)
class GoTo:
    step: StepSpec


@dataclass(frozen=True)
class End:
    """A named end; ``exit_code`` 0 means that the goal was reached.

    ``reason``: why, if no route says it.
    ``step``: where it occurred; ``route``: the entry that led to it; ``by_cycles``: more cycles could have continued
    it.
    """

    outcome: str
    exit_code: int
    step: str = field(default="", compare=False)
    route: RouteSpec | None = field(default=None, compare=False)
    by_cycles: bool = field(default=False, compare=False)
    reason: str = field(default="", compare=False)


def after(flow: FlowSpec, step: StepSpec, state: FlowState) -> GoTo | End:
    """The move after ``step``. A visit beyond the target's ``limits.visits`` ends the run without its goal instead.

    Raises `DefinitionError` if a condition cannot be evaluated.
    """
    bad = state.steps[step.id].bad
    try:
        number = _taken(flow, step, state)
    except DefinitionError:
        if not bad:
            raise
        number = None  # such as a field that only a good result has
    if bad and not is_survived(step, is_routed=number is not None):
        return End(f"{step.id}_failed", 1, step.id, reason=f"step {step.id}: {bad}")
    if number is not None:
        route = step.next[number]
        if route.to is not None:
            return _enter(flow, route.to, state)
        by_cycles = any(re.search(r"\bcycles\b", each.when or "") for each in step.next[: number + 1])
        return End(route.end or "end", route.exit or 0, step.id, route, by_cycles)
    position = [each.id for each in flow.steps].index(step.id) + 1
    if position < len(flow.steps):
        return _enter(flow, flow.steps[position].id, state)
    return End("success", 0)


def is_survived(step: StepSpec, *, is_routed: bool) -> bool:
    """Whether the flow survives a bad result: it is allowed, or a route of the step's ``next``, which reads it."""
    return "bad" in step.allow or (is_routed and routes_on_result(step))


def _taken(flow: FlowSpec, step: StepSpec, state: FlowState) -> int | None:
    """The number of the ``next`` entry that is taken, if any."""
    place = step_place(flow, flow.steps.index(step)) / "next"
    for number, route in enumerate(step.next):
        if route.when is None or evaluate(route.when, state.context(), place / number / "when"):
            return number
    return None


def _enter(flow: FlowSpec, step_id: str, state: FlowState) -> GoTo | End:
    target = flow.step(step_id)
    if target.limits.visits is not None and state.steps[step_id].visits >= target.limits.visits:
        return End(f"{step_id}_visits_used_up", 1)
    return GoTo(target)


def ends(flow: FlowSpec) -> tuple[End, ...]:
    """The ends that its routes, its last step and its ``limits.visits`` can lead to, each once, in flow order.

    A role's DONE is not among them.
    """
    found: dict[End, None] = {}
    for index, step in enumerate(flow.steps):
        if (used_up := visits_used_up(step)) is not None:
            found[used_up] = None
        for route in ways_out(flow, index):
            if route.end is not None:
                found[End(route.end, route.exit or 0)] = None
    return tuple(found)


def relies_on_done(flow: FlowSpec) -> bool:
    """Whether only a role that says DONE can end the flow with its goal."""
    return all(end.exit_code for end in ends(flow))


def visits_used_up(step: StepSpec) -> End | None:
    """The end that a visit beyond ``limits.visits`` leads to."""
    return None if step.limits.visits is None else End(f"{step.id}_visits_used_up", 1)
