"""Checks of one flow's steps, before any name outside the flow is looked up."""

from __future__ import annotations

from codex_multi_role.catalog.flow_expressions import whole_expression
from codex_multi_role.catalog.flow_spec import FlowSpec, never_reached
from codex_multi_role.catalog.step_spec import Route, StepSpec
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.nearest import no_such

TEMPLATE_NAMES = ("goal", "inputs", "cycle", "cycles", "roles", "steps", "vars")
ITEM_NAMES = ("item", "index")
NEEDED = "needed"


def check_steps(flow: FlowSpec) -> None:
    """Check that ids are unique, routes lead to steps, steps are reachable, and fan-outs and ``set`` are valid.

    Raises ``DefinitionError`` with file and key path.
    """
    ids = [step.id for step in flow.steps]
    for index, step in enumerate(flow.steps):
        place = f"{flow.source}: steps[{index}]"
        if step.id in ids[:index]:
            raise DefinitionError(f'{place}.id: "{step.id}" is the id of an earlier step', "Give each step an id.")
        for number, route in enumerate(step.next):
            _check_route(route, f"{place}.next[{number}]", ids, is_last=number == len(step.next) - 1)
        _check_fan_out(step, place)
        _check_set(step, place, list(flow.vars))
    for number, shown in enumerate(flow.outputs or ()):
        if shown not in ids:
            message, hint = no_such("step", shown, ids)
            raise DefinitionError(f"{flow.source}: outputs[{number}]: {message}", hint)
    _check_reached(flow)


def _check_route(route: Route, place: str, ids: list[str], *, is_last: bool) -> None:
    if route.to is not None and route.to not in ids:
        message, hint = no_such("step", route.to, ids)
        raise DefinitionError(f"{place}.to: {message}", hint)
    if route.when is None and not is_last:
        raise DefinitionError(f"{place}.when: is missing; without it the entries after this one are never reached")


def _check_fan_out(step: StepSpec, place: str) -> None:
    if step.as_ in (*TEMPLATE_NAMES, "index", NEEDED):
        raise DefinitionError(f'{place}.as: "{step.as_}" is what templates call something else', "Choose another name.")
    if isinstance(step.for_each, list) and step.max_items is not None and len(step.for_each) > step.max_items:
        raise DefinitionError(
            f"{place}.for_each: has {len(step.for_each)} items, more than max_items, {step.max_items}"
        )
    for key, meant in (("for_each", "a list"), ("concurrency", "a number from 1 to 64"), ("needs", "a list")):
        value = getattr(step, key)
        if isinstance(value, str) and not _is_whole(value, f"{place}.{key}"):
            raise DefinitionError(
                f"{place}.{key}: must be {meant}, or one whole {{{{ … }}}} that gives it, not {value!r}"
            )


def _is_whole(text: str, place: str) -> bool:
    from jinja2 import TemplateSyntaxError

    try:
        return whole_expression(text) is not None
    except TemplateSyntaxError as error:
        raise DefinitionError(f"{place}: {error}") from error


def _check_set(step: StepSpec, place: str, variables: list[str]) -> None:
    for name in step.set:
        if name not in variables:
            message, _ = no_such("run variable", name, variables)
            raise DefinitionError(f"{place}.set.{name}: {message}", "Give it its first value in the flow's vars.")


def _check_reached(flow: FlowSpec) -> None:
    if unreached := never_reached(flow):
        first = [step.id for step in flow.steps].index(unreached[0])
        raise DefinitionError(
            f"{flow.source}: steps[{first}]: never reached: {', '.join(unreached)}",
            "Lead there from a step's `next`, or take out what nothing leads to.",
        )
