"""Checks before a run starts that every name in a flow exists, templates parse, and calls fit and end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter

from codex_multi_role.catalog.catalog import RoleSpecCatalog
from codex_multi_role.catalog.definition import check_schema
from codex_multi_role.catalog.flow_expressions import has_expressions
from codex_multi_role.catalog.flow_inputs import resolve_inputs
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place
from codex_multi_role.catalog.flow_steps import ITEM_NAMES, NEEDED, TEMPLATE_NAMES, check_steps, filled_in
from codex_multi_role.catalog.step_spec import EVERY_ROLE, StepSpec
from codex_multi_role.errors import UsageError
from codex_multi_role.flow.conditions import depth_of
from codex_multi_role.flow.template_types import check_expression, check_template, kinds_of_value
from codex_multi_role.reading.nearest import no_such
from codex_multi_role.reading.places import Place, Problems
from codex_multi_role.reading.schema_validation import schema_problems
from codex_multi_role.reading.value_types import (
    ANY,
    LIST,
    NUMBER,
    TEXT,
    Fields,
    ValueType,
    fields_named,
)

_RESULT_NAMES: Fields = {"files": ANY, "tests": ANY}
AT_THE_END: Fields = {"outcome": TEXT, "exit_code": NUMBER}
"""What the checks at the end of a run see besides."""
SUGGEST_NAMES = ("inputs", "cycle", "cycles")
StepTypes = Callable[[StepSpec], ValueType]
"""What templates can see of a step: a mapping, with its fields if they are known."""


def check_flows(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog, types: Mapping[str, Fields]) -> None:
    """Check the steps, what depends on several flows or on the roles, and that templates fit the ``types``, by flow.

    Raises one ``DefinitionError`` for all mistakes: unknown roles, steps, inputs or template names, templates that do
    not parse, unreachable steps, endless calls.
    """
    problems = Problems()
    for flow in flows.values():
        problems.collect(check_steps, flow)
        problems.collect(check_references, flow, catalog, types[flow.name])
    problems.collect(check_calls, flows)
    problems.raise_found()


def check_references(flow: FlowSpec, catalog: RoleSpecCatalog, types: Fields) -> None:
    """Check that roles exist in ``catalog``, templates parse and fit the ``types`` of their names, and reply schemas.

    Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    roles = [role.name for role in catalog.roles]
    first_values: Fields = {name: types[name] for name in ("goal", "inputs", "cycles")}
    problems.collect(check_template, flow.vars, Place(flow.source, ("vars",)), first_values)
    for index, step in enumerate(flow.steps):
        place = step_place(flow, index)
        with problems.collected():
            if step.reply is not None:
                check_schema(step.reply, place / "reply")
            for name, schema in step.review.fields.items() if step.review is not None else ():
                _check_field(schema, place / "review" / "fields" / name)
        for role in [each for each in step.asked if each not in (EVERY_ROLE, *roles)][:1]:
            key = "roles" if step.roles and not step.asks_at_once else "ask"
            problems.add((place / key).unknown("role", role, roles))
        _check_templates(step, place, types, problems)
    for step, place in flow.final_checks:
        _check_templates(step, place, {**types, **AT_THE_END}, problems)
    for key in ("title", "text", "file", "figures"):
        problems.collect(
            check_template, getattr(flow.result, key), Place(flow.source, ("result", key)), {**types, **_RESULT_NAMES}
        )
    problems.raise_found()


def template_types(flow: FlowSpec, catalog: RoleSpecCatalog, of_step: StepTypes) -> Fields:
    """The type of each name that all templates of the flow can use."""
    types: Fields = {
        **dict.fromkeys(TEMPLATE_NAMES, NUMBER),
        "goal": TEXT,
        "inputs": ValueType.of_fields({name: spec.value_type for name, spec in flow.inputs.items()}),
        "roles": ValueType.of_fields(fields_named(role.name for role in catalog.roles)),
        "steps": ValueType.of_fields({step.id: of_step(step) for step in flow.steps}),
    }
    return {**types, "vars": ValueType.of_fields(_kinds_of_variables(flow, types))}


def _kinds_of_variables(flow: FlowSpec, types: Fields) -> Fields:
    """Those of a variable's first value, and of all that steps set it to, which may depend on other variables."""
    found = {name: kinds_of_value(value, types) for name, value in flow.vars.items()}
    known: Fields = {}
    while known != found:
        known = found
        seen = {**types, "vars": ValueType.of_fields(known)}
        for name, value in [each for step in flow.steps for each in step.set.items() if each[0] in known]:
            found = {**found, name: found[name] | kinds_of_value(value, seen)}
    return known


def item_types(step: StepSpec, types: Fields) -> Fields:
    """The same for the templates that are rendered once per item of the step's fan-out, if it has one."""
    if step.for_each is None:
        return types
    own = (*ITEM_NAMES, step.for_each.as_, *([NEEDED] if step.for_each.needs is not None else []))
    return {**types, **dict.fromkeys(own, ANY)}


def unused_roles(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> tuple[str, ...]:
    """The roles that no step of ``flows`` asks, in the catalog's order."""
    asked = {role for flow in flows.values() for step in flow.steps for role in step.asked}
    return tuple(role.name for role in catalog.roles if not {role.name, EVERY_ROLE} & asked)


def unsent_roles(flows: Mapping[str, FlowSpec], catalog: RoleSpecCatalog) -> dict[str, str]:
    """A warning for each role that ``flows`` ask, but never with its instructions, by the name of the role."""
    warnings = {}
    for role in catalog.roles:
        asks = {
            f"{flow.name}/{step.id}": step.prompt_replaces
            for flow in flows.values()
            for step in flow.steps
            if {role.name, EVERY_ROLE} & {*step.asked}
        }
        if asks and all(asks.values()):
            where = f"{role.source}: role {role.name}: its instructions are never sent"
            warnings[role.name] = f"{where}: prompt_replaces in {', '.join(asks)}; delete it where they are to be sent"
    return warnings


def _check_field(schema: object, place: Place) -> None:
    checked = check_schema(schema, place)
    is_constant = "default" in checked and not has_expressions(checked["default"])
    if is_constant and (problems := schema_problems(checked["default"], checked)):
        raise (place / "default").error(f"does not fit its field: {problems[0].removeprefix('$: ')}")


def _check_templates(step: StepSpec, place: Place, types: Fields, problems: Problems) -> None:
    """A ``when`` is evaluated after the whole step: it knows the results, but no single item."""
    per_item = item_types(step, types)
    checked: list[tuple[object, Place, Fields, ValueType]] = [
        (step.set, place / "set", types, ANY),
        (step.ask, place / "ask", per_item, ANY),
        (step.title, place / "title", per_item, ANY),
    ]
    checked += [(value, at, per_item, wanted or ANY) for value, at, wanted in filled_in(step, place)]
    if (fan_out := step.for_each) is not None:
        around, of_needs = place / "for_each", {name: known for name, known in per_item.items() if name != NEEDED}
        checked += [(fan_out.items, around / "items", types, LIST), (fan_out.needs, around / "needs", of_needs, LIST)]
        checked += [(fan_out.concurrency, around / "concurrency", types, NUMBER)]
    for value, where, known, wanted in checked:
        problems.collect(check_template, value, where, known, wanted if isinstance(value, str) else ANY)
    if fan_out is not None and fan_out.until is not None:
        of_until = {**types, "results": LIST}
        problems.collect(check_expression, fan_out.until, place / "for_each" / "until", of_until)
    for number, route in enumerate(step.next):
        where = place / "next" / number
        if route.when is not None:
            problems.collect(check_expression, route.when, where / "when", types)
        problems.collect(check_template, route.reason, where / "reason", types)
        problems.collect(
            check_template, route.suggest, where / "suggest", {name: types[name] for name in SUGGEST_NAMES}
        )


def check_calls(flows: Mapping[str, FlowSpec]) -> None:
    """Check that every call gives the called flow's inputs, and that every circle of calls has a ``limits.depth``.

    ``flows`` includes every called one. Raises one ``DefinitionError`` for all mistakes.
    """
    problems = Problems()
    for flow in flows.values():
        for index, step in enumerate(flow.steps):
            if step.call is not None:
                _check_inputs(step, step_place(flow, index) / "with", flows[step.call], problems)
                if flows[step.call].finally_:
                    problem = f"{step.call} has finally, which belongs to the end of a run"
                    hint = "Put it in the flow that the run is started with."
                    problems.add((step_place(flow, index) / "call").error(problem, hint))
    problems.collect(_check_circles, flows)
    problems.raise_found()


def _check_inputs(step: StepSpec, place: Place, called: FlowSpec, problems: Problems) -> None:
    for name, value in step.with_.items():
        problems.collect(_check_input, name, value, place, called)
    for name, spec in called.inputs.items():
        if spec.required and name not in step.with_:
            problem = f'flow {called.name}: the input "{name}" is missing'
            problems.add(place.error(problem, f"Give it here: {name}: <{spec.type}>."))


def _check_input(name: str, value: object, place: Place, called: FlowSpec) -> None:
    if name not in called.inputs:
        message, hint = no_such("input", name, called.inputs)
        raise place.key(name).error(f"flow {called.name}: {message}", hint)
    if not has_expressions(value):
        try:
            resolve_inputs(called.name, {name: called.inputs[name]}, {name: value})
        except UsageError as error:
            raise (place / name).error(str(error), error.hint) from error


def _check_circles(flows: Mapping[str, FlowSpec]) -> None:
    """Every circle has a limited call exactly if no circle is left without the limited calls."""
    unlimited = {
        name: [step.call for step in flow.steps if step.call is not None and depth_of(step) is None]
        for name, flow in flows.items()
    }
    try:
        TopologicalSorter(unlimited).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][:-1][::-1]  # it begins with the called one
        start = circle.index(min(circle, key=list(flows).index))
        named = [*circle[start:], *circle[: start + 1]]
        last = flows[named[-2]]
        index = next(index for index, step in enumerate(last.steps) if step.call == named[0] and depth_of(step) is None)
        raise (step_place(last, index) / "call").error(
            f"the circle of calls has no limit: {' -> '.join(named)}",
            "Give the step `limits: {depth: N}`: how often a flow may run within itself.",
        ) from error
