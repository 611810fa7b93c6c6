"""The ways a flow can take, those it leaves unsaid included. Nothing is evaluated: a condition may hold or not."""

from __future__ import annotations

from codex_multi_role.catalog.flow_spec import FlowSpec
from codex_multi_role.catalog.step_spec import Route

AFTER_THE_LAST_STEP = "success"


def ways_out(flow: FlowSpec, index: int) -> tuple[Route, ...]:
    """The ``next`` of the step at ``index``; unless its last entry always holds, the way on comes after it.

    That is the following step, or after the last one the end ``success``.
    """
    routes = flow.steps[index].next
    if routes and routes[-1].when is None:
        return routes
    following = flow.steps[index + 1 : index + 2]
    return (*routes, Route(to=following[0].id) if following else Route(end=AFTER_THE_LAST_STEP))


def never_reached(flow: FlowSpec) -> tuple[str, ...]:
    """The steps that no way leads to from the first one, in the flow's order."""
    indexes = {step.id: index for index, step in enumerate(flow.steps)}
    reached: set[str] = set()
    waiting = [flow.steps[0].id]
    while waiting:
        step_id = waiting.pop()
        if step_id not in reached:
            reached.add(step_id)
            waiting += [route.to for route in ways_out(flow, indexes[step_id]) if route.to is not None]
    return tuple(step_id for step_id in indexes if step_id not in reached)
