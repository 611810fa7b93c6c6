"""Calls whose flows work in a copy of the workspace: copies within it cannot be merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codex_multi_role.catalog import FlowSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.flow_spec import step_place
from codex_multi_role.reading.places import Problems


def check_separate_calls(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, problems: Problems) -> None:
    """``flows`` includes every called one. A step that names an unknown check or role is reported elsewhere."""
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.call is None:
                continue
            inside, place = list(_steps_below(step.call, flows)), step_place(flow, index)
            with problems.collected():
                if step.isolate and any(each.isolate for each in inside):
                    raise (place / "isolate").error(
                        f"the flow {step.call} has steps in copies of their own, which cannot be merged into a copy",
                        "Isolate either this step or those.",
                    )


def _steps_below(name: str, flows: Mapping[str, FlowSpec]) -> Iterator[StepSpec]:
    """The steps of the flow and of all that it calls."""
    seen, waiting = set[str](), [name]
    while waiting:
        if (flow := flows.get(waiting.pop())) and flow.name not in seen:
            seen.add(flow.name)
            waiting += [step.call for step in flow.steps if step.call is not None]
            yield from flow.steps
