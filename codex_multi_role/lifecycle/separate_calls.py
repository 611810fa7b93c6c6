"""Calls whose flows work elsewhere, in a copy of the workspace or on another machine: lost changes, limits per item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codex_multi_role.catalog import EVERY_ROLE, FlowSpec, RoleSpec, RoleSpecCatalog, StepSpec
from codex_multi_role.catalog.flow_spec import step_place, steps_below
from codex_multi_role.checks import find_check
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.places import Problems
from codex_multi_role.steps.cap import ROLE_KEYS


def check_separate_calls(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, problems: Problems) -> None:
    """``flows`` includes every called one. A step that names an unknown check or role is reported elsewhere."""
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.call is None:
                continue
            inside, place = steps_below(flows, step.call), step_place(flow, index)
            with problems.collected():
                if step.isolate and any(each.isolate for each in inside):
                    raise (place / "isolate").error(
                        f"the flow {step.call} has steps in copies of their own, which cannot be merged into a copy",
                        "Isolate either this step or those.",
                    )
            with problems.collected():
                if step.place and not step.isolate and any(_may_change_workspace(each, catalog) for each in inside):
                    raise (place / "place").error(
                        f"the flow {step.call} may change the workspace; on another machine its changes would be lost",
                        "Add `isolate: worktree`: the changes of each item are then merged.",
                    )


def limits_per_item(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> Iterator[str]:
    """Which steps give each item on workers the whole limits of a role, as warnings."""
    for flow in flows.values():
        for step in flow.steps:
            if step.call is None or not step.place:
                continue
            asked = {each.ask for each in steps_below(flows, step.call)}
            names = [role.name for role in catalog.roles if {role.name, EVERY_ROLE} & asked and _is_limited(role)]
            if names:
                yield (
                    f"step {step.id} of flow {flow.name}: on workers, each item may use the whole limits of "
                    f"{', '.join(names)}; --max-turns, --max-tokens and --max-cost limit all items together"
                )


def _is_limited(role: RoleSpec) -> bool:
    return any(getattr(role.limits, key) is not None for key in ROLE_KEYS.values())


def _may_change_workspace(step: StepSpec, catalog: RoleSpecCatalog) -> bool:
    if step.check is not None:
        try:
            return not find_check(step.check).read_only
        except UsageError:
            return False
    return any(
        role.may_change_workspace for role in catalog.roles if not {role.name, EVERY_ROLE}.isdisjoint(step.asked)
    )
