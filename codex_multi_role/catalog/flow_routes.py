"""All routes of a flow, including implicit ones. Nothing is evaluated: a condition may be true or false."""

from __future__ import annotations

from codex_multi_role.catalog.flow_spec import FlowSpec
from codex_multi_role.catalog.step_spec import Route

AFTER_THE_LAST_STEP = "success"


def ways_out(flow: FlowSpec, index: int) -> tuple[Route, ...]:
    """The ``next`` of the step at ``index``, and the implicit route unless the last entry has no condition.

    The implicit route leads to the following step, or from the last one to the end ``success``.
    """
    routes = flow.steps[index].next
    if routes and routes[-1].when is None:
        return routes
    following = flow.steps[index + 1 : index + 2]
    return (*routes, Route(to=following[0].id) if following else Route(end=AFTER_THE_LAST_STEP))


def never_reached(flow: FlowSpec) -> tuple[str, ...]:
    """The steps that no route from the first one leads to, in the flow's order."""
    indexes = {step.id: index for index, step in enumerate(flow.steps)}
    reached: set[str] = set()
    waiting = [flow.steps[0].id]
    while waiting:
        step_id = waiting.pop()
        if step_id not in reached:
            reached.add(step_id)
            waiting += [route.to for route in ways_out(flow, indexes[step_id]) if route.to is not None]
    return tuple(step_id for step_id in indexes if step_id not in reached)
