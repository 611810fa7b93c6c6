"""Templates that no run can fill in: they need the result of a step that cannot have run before them.

Only what is certain counts: a part that is always evaluated, and a step that no path leads through before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    local_names,
    name_or_constant,
    parse_expression,
    parse_template,
)
from codex_multi_role.catalog.flow_spec import FlowSpec, step_place, ways_out
from codex_multi_role.catalog.step_spec import StepSpec
from codex_multi_role.reading.places import Place, Problems

if TYPE_CHECKING:
    from jinja2 import nodes

KNOWN_BEFORE = frozenset({"visits", "status", "error", "verdict", "handoff", *dir(dict)})
"""What templates can read of a step before its first visit."""
FAILING_FILTERS = frozenset({"count", "first", "float", "int", "join", "last", "length", "list", "lower", "round"})
FAILING_FILTERS |= {"sort", "string", "tojson", "trim", "upper"}
"""Filters that fail if there is no value."""


def check_fillable(flow: FlowSpec) -> None:
    """Raise one ``DefinitionError`` for all templates that cannot be filled in when a run first reaches them."""
    problems = Problems()
    ids = {step.id for step in flow.steps}
    for index, step in enumerate(flow.steps):
        unknown = ids - _visited_before(flow, index)
        for place, expression in _rendered_before(step, step_place(flow, index)):
            _check(expression, unknown, place, problems)
        for place, expression in _rendered_after(step, step_place(flow, index)):
            _check(expression, unknown - {step.id}, place, problems)
    problems.raise_found()


def _check(expression: nodes.Node, unknown: set[str], place: Place, problems: Problems) -> None:
    for owner, field in _needed(expression):
        if owner in unknown and field not in KNOWN_BEFORE:
            with problems.collected():
                raise place.error(
                    f"steps.{owner}.{field} cannot have a value here: no path leads through the step {owner} before",
                    f"Use the result of an earlier step, or a default: steps.{owner}.{field} | default('').",
                )


def _visited_before(flow: FlowSpec, index: int) -> set[str]:
    """The steps that some path leads through before the first visit of the step at ``index``."""
    positions = {step.id: position for position, step in enumerate(flow.steps)}
    reached, waiting = set[str](), [flow.steps[0].id]
    while waiting:
        step_id = waiting.pop()
        if step_id not in reached and positions[step_id] != index:
            reached.add(step_id)
            waiting += [route.to for route in ways_out(flow, positions[step_id]) if route.to is not None]
    return reached


def _rendered_before(step: StepSpec, place: Place) -> Iterator[tuple[Place, nodes.Node]]:
    """What every visit of the step evaluates before its work: not the templates of items that may be none."""
    keys = ["for_each"] if step.for_each else []
    if step.for_each is None or (isinstance(step.for_each, list) and step.for_each and step.needs is None):
        keys += ["prompt", "review", "show", "with_"]
    for key in keys:
        yield from _evaluated(getattr(step, key), place / key.rstrip("_"))


def _rendered_after(step: StepSpec, place: Place) -> Iterator[tuple[Place, nodes.Node]]:
    """What every visit evaluates after its work: of the routes, only the first condition."""
    yield from _evaluated(step.set, place / "set")
    if step.next and step.next[0].when is not None:
        yield place / "next" / 0 / "when", parse_expression(step.next[0].when)


def _evaluated(value: object, place: Place) -> Iterator[tuple[Place, nodes.Node]]:
    """The expressions that rendering ``value`` always evaluates."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _evaluated(item, place / key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _evaluated(item, place / index)
    elif isinstance(value, str) and has_expressions(value):
        template = parse_template(value)
        if "steps" not in local_names(template):
            yield from ((place, expression) for node in template.body for expression in _parts(node))


def _parts(node: nodes.Node) -> Iterator[nodes.Node]:
    """The expressions of a part of a template that must have a value; those in a block may never be evaluated."""
    from jinja2 import nodes

    match node:
        case nodes.Output(nodes=expressions):
            yield from expressions
        case nodes.If(test=test):
            yield test
        case nodes.For(iter=iterated):
            yield iterated


def _needed(part: nodes.Node) -> Iterator[tuple[str, str]]:
    """Step and field of each ``steps.<id>.<field>`` without which evaluating the expression always fails."""
    from jinja2 import nodes

    match part:
        case nodes.Getattr() | nodes.Getitem():
            path = name_or_constant(part)
            if isinstance(path, tuple) and len(path) > 2 and path[0] == "steps":
                yield str(path[1]), str(path[2])
            elif not isinstance(path, tuple):
                yield from _needed(part.node)
        case nodes.Compare(expr=left, ops=[nodes.Operand(op="in" | "notin", expr=right), *_]):
            yield from _needed(right)
        case nodes.Compare(expr=left, ops=[nodes.Operand(expr=right), *_]):
            yield from (*_needed(left), *_needed(right))
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in FAILING_FILTERS:
            yield from _needed(filtered)
        case nodes.And(left=always) | nodes.Or(left=always) | nodes.Not(node=always) | nodes.CondExpr(test=always):
            yield from _needed(always)
        case nodes.Concat(nodes=parts):
            yield from (each for inner in parts for each in _needed(inner))
