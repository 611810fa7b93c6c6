"""Every name a flow mentions must exist, and every template in it must parse, before anything starts."""

from __future__ import annotations

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.flow_spec import EVERY_ROLE, FlowSpec, Route, StepSpec
from codex_multi_role.catalog.nearest import no_such
from codex_multi_role.catalog.templates import Names, check_expression, check_template
from codex_multi_role.errors import DefinitionError


def check_steps(flow: FlowSpec) -> None:
    """Ids are unique, ``to`` names a step, only the last way out is unconditional. Raises ``DefinitionError``."""
    ids = [step.id for step in flow.steps]
    for index, step in enumerate(flow.steps):
        place = f"{flow.source}: steps[{index}]"
        if step.id in ids[:index]:
            raise DefinitionError(f'{place}.id: "{step.id}" is the id of an earlier step', "Give each step an id.")
        for number, route in enumerate(step.next):
            _check_route(route, f"{place}.next[{number}]", ids, is_last=number == len(step.next) - 1)


def check_references(flow: FlowSpec, catalog: RoleSpecCatalog) -> None:
    """Roles exist in ``catalog``, templates parse and use known names. Raises ``DefinitionError``."""
    roles = [role.name for role in catalog.roles]
    names: Names = {
        "goal": None,
        "inputs": set(flow.inputs),
        "cycle": None,
        "cycles": None,
        "roles": set(roles),
        "steps": {step.id for step in flow.steps},
    }
    for index, step in enumerate(flow.steps):
        _check_step(step, f"{flow.source}: steps[{index}]", roles, names)


def _check_step(step: StepSpec, place: str, roles: list[str], names: Names) -> None:
    if step.ask is not None and step.ask not in (EVERY_ROLE, *roles):
        message, hint = no_such("role", step.ask, roles)
        raise DefinitionError(f"{place}.ask: {message}", hint)
    check_template(step.with_, f"{place}.with", names)
    for number, route in enumerate(step.next):
        if route.when is not None:
            check_expression(route.when, f"{place}.next[{number}].when", names)


def _check_route(route: Route, place: str, ids: list[str], *, is_last: bool) -> None:
    if route.to is not None and route.to not in ids:
        message, hint = no_such("step", route.to, ids)
        raise DefinitionError(f"{place}.to: {message}", hint)
    if route.when is None and not is_last:
        raise DefinitionError(f"{place}.when: is missing; without it the entries after this one are never reached")
