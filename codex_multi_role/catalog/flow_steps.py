"""Checks of one flow's steps, before any name outside the flow is looked up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from codex_multi_role.catalog.flow_expressions import whole_expression
from codex_multi_role.catalog.flow_spec import FlowSpec, never_reached, step_place
from codex_multi_role.catalog.step_spec import TEMPLATES, RouteSpec, StepSpec
from codex_multi_role.catalog.templates import check_template
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.value_types import ValueType, type_of_schema

TEMPLATE_NAMES = ("goal", "inputs", "cycle", "cycles", "roles", "steps", "vars")
ITEM_NAMES = ("item", "index")
NEEDED = "needed"


def filled_in(
    step: StepSpec, place: Place, inputs: Mapping[str, ValueType] = MappingProxyType({})
) -> Iterator[tuple[object, Place, ValueType | None]]:
    """What the step at ``place`` fills in, once or once per item: where it stands, and its type if only one fits.

    ``inputs``: those of the flow that it calls.
    """
    for key in ("prompt", "review", "show"):
        yield step.template(key), place / TEMPLATES[key], None
    for name, value in step.with_.items():
        yield value, place / "with" / name, inputs.get(name)
    for name, schema in step.review.fields.items() if step.review is not None else ():
        yield schema.get("default"), place / "review" / "fields" / name / "default", type_of_schema(schema)


def check_steps(flow: FlowSpec) -> None:
    """Check that ids are unique, routes lead to steps, steps are reachable, and fan-outs and ``set`` are valid.

    Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    ids = [step.id for step in flow.steps]
    for index, step in enumerate(flow.steps):
        place = step_place(flow, index)
        if step.id in ids[:index]:
            problems.add((place / "id").error(f'"{step.id}" is the id of an earlier step', "Give each step an id."))
        for number, route in enumerate(step.next):
            is_last = number == len(step.next) - 1
            problems.collect(_check_route, route, place / "next" / number, ids, is_last=is_last)
        problems.collect(_check_fan_out, step, place)
        problems.collect(_check_set, step, place / "set", list(flow.vars))
    for number, shown in enumerate(flow.outputs or ()):
        if shown not in ids:
            problems.add((Place(flow.source) / "outputs" / number).unknown("step", shown, ids))
    problems.raise_found()
    _check_reached(flow)


def _check_route(route: RouteSpec, place: Place, ids: list[str], *, is_last: bool) -> None:
    if route.to is not None and route.to not in ids:
        raise (place / "to").unknown("step", route.to, ids)
    if route.when is None and not is_last:
        raise place.error("when is missing; without it the entries after this one are never reached")


def _check_fan_out(step: StepSpec, place: Place) -> None:
    if (fan_out := step.for_each) is None:
        return
    place /= "for_each"
    if fan_out.as_ in (*TEMPLATE_NAMES, "index", NEEDED):
        raise (place / "as").error(f'"{fan_out.as_}" is what templates call something else', "Choose another name.")
    if isinstance(fan_out.items, list) and len(fan_out.items) > (fan_out.max_items or math.inf):
        raise (place / "items").error(f"has {len(fan_out.items)} items, more than max_items, {fan_out.max_items}")
    for key, meant in (("items", "a list"), ("concurrency", "a number from 1 to 64"), ("needs", "a list")):
        value = getattr(fan_out, key)
        if isinstance(value, str):
            check_template(value, place / key)
            if whole_expression(value) is None:
                raise (place / key).error(f'must be {meant}, or one whole {{{{ … }}}} that gives it, not "{value}"')


def _check_set(step: StepSpec, place: Place, variables: list[str]) -> None:
    for name in step.set:
        if name not in variables:
            message, _ = no_such("run variable", name, variables)
            raise place.key(name).error(message, "Give it its first value in the flow's vars.")


def _check_reached(flow: FlowSpec) -> None:
    if unreached := never_reached(flow):
        first = [step.id for step in flow.steps].index(unreached[0])
        raise step_place(flow, first).error(
            f"never reached: {', '.join(unreached)}",
            "Lead there from a step's `next`, or remove what nothing leads to.",
        )
