"""How a flow can end."""

from __future__ import annotations

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.catalog.flow_spec import ways_out
from codex_multi_role.flow.routing import End


def ends(flow: FlowSpec) -> tuple[End, ...]:
    """The ends that its routes, its last step and its ``max_visits`` can lead to, each once, in flow order.

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
    """The end that a visit beyond ``max_visits`` leads to."""
    return None if step.max_visits is None else End(f"{step.id}_visits_used_up", 1)
