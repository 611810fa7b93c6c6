"""What is known before a run of a flow's conditions and values, and of the flows it calls."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from jinja2 import nodes

from codex_multi_role.catalog import FlowSpec, StepSpec
from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    name_or_constant,
    parse_expression,
    whole_expression,
)
from codex_multi_role.catalog.flow_inputs import resolve_inputs
from codex_multi_role.catalog.template_sandbox import COMPARISONS
from codex_multi_role.errors import UsageError
from codex_multi_role.reading.places import Place

# A name, such as ("inputs", "target"), with its value or another name for it.
Meanings = Mapping[object, object]
UNKNOWN: Final = object()
Values = Callable[[nodes.Expr], Collection[object]]
"""What a part of a condition can be; empty if anything."""

_KEEPING = ("list", "map", "reverse", "sort")
_CHOOSING = ("reject", "rejectattr", "select", "selectattr", "unique")
"""Filters that keep the number of elements of a list, and those that may leave fewer."""

_MIRRORED = {"lt": "gt", "lteq": "gteq", "gt": "lt", "gteq": "lteq", "eq": "eq"}


def meanings_of(flow: FlowSpec, cycles: int, inputs: Mapping[str, object]) -> dict[object, object]:
    """What the names in ``flow`` stand for. ``inputs``: those with a known value; no defaults are added.

    A variable that no step sets keeps its first value.
    """
    meanings: dict[object, object] = {("inputs", name): value for name, value in inputs.items()}
    meanings |= {("cycles",): cycles, ("cycle",): ("steps", flow.steps[0].id, "visits")}
    changed = {name for step in flow.steps for name in step.set}
    for name in flow.vars.keys() - changed:
        if (value := known_value(flow.vars[name], meanings)) is not UNKNOWN:
            meanings["vars", name] = value
    return meanings


def known_value(value: object, meanings: Meanings) -> object:
    """``value`` once rendered: itself, or the meaning of the one name in its ``{{ … }}``; otherwise `UNKNOWN`."""
    if not has_expressions(value):
        return value
    expression = whole_expression(value) if isinstance(value, str) else None
    return UNKNOWN if expression is None else _meant(parse_expression(expression), meanings)


def known_truth(when: str | None, meanings: Meanings) -> bool | None:
    """Whether the condition holds whatever happens in the run; None if unknown. A missing condition holds."""
    if when is None:
        return True
    known = _truths(
        parse_expression(when), lambda part: [each for each in [_meant(part, meanings)] if each is not UNKNOWN]
    )
    return known.pop() if len(known) == 1 else None


def _truths(part: nodes.Expr, values: Values) -> set[bool]:
    """What the truth of a condition can be."""
    match part:
        case nodes.Not(node=inner):
            return {not each for each in _truths(inner, values)}
        case nodes.And(left=left, right=right) | nodes.Or(left=left, right=right):
            join = operator.and_ if isinstance(part, nodes.And) else operator.or_
            return {join(one, other) for one in _truths(left, values) for other in _truths(right, values)}
        case nodes.Compare(expr=left, ops=[nodes.Operand(op=sign, expr=right)]):
            try:
                found = {bool(COMPARISONS[sign](one, other)) for one in values(left) for other in values(right)}
            except TypeError:
                found = set()
            return found or {True, False}
    return {bool(each) for each in values(part)} or {True, False}


def _meant(part: nodes.Expr, meanings: Meanings) -> object:
    """The value of a constant or of a known name; otherwise `UNKNOWN`."""
    found = name_or_constant(part)
    meant = meanings.get(found, UNKNOWN) if isinstance(found, tuple) else found
    return UNKNOWN if meant is None or isinstance(meant, tuple) else meant


def may_be_met(until: str, most: int) -> bool:
    """Whether a condition on the ``results`` of a fan-out may hold after some number of items, of which ``most`` exist.

    Only what compares their number with constants is judged; anything else may hold. Between two constants, all numbers
    compare alike.
    """
    condition = parse_expression(until)
    constants = [each.value for each in condition.find_all(nodes.Const) if isinstance(each.value, int | float)]
    near = (math.floor(each) + offset for each in constants if abs(each) <= most + 1 for offset in (-1, 0, 1))
    counts = {0, most} | {each for each in near if 0 <= each <= most}
    return any(True in _truths(condition, partial(_numbers, count=each, fewer=counts)) for each in counts)


def _numbers(part: nodes.Expr, count: int, fewer: Collection[int]) -> Collection[object]:
    """What a constant, or the number of (some) of ``count`` ``results``, can be; empty for anything else.

    A filter leaves any number of ``fewer``.
    """
    match part:
        case nodes.Const(value=value):
            return [value]
        case nodes.Filter(name="length" | "count", node=listed):
            names = []
            while isinstance(listed, nodes.Filter) and listed.name in (*_KEEPING, *_CHOOSING):
                names.append(listed.name)
                listed = listed.node
            if isinstance(listed, nodes.Name) and listed.name == "results":
                return fewer if set(names) & set(_CHOOSING) else [count]
    return ()


def names_compared(when: str | None) -> set[object]:
    """The names that a condition, or a part of it, compares with something."""
    joins: tuple[Literal["and", "or"], ...] = ("and", "or")
    return {left for joined_by in joins for left, _, _ in _comparisons(when, joined_by) if isinstance(left, tuple)}


def limits_in(
    when: str | None, joined_by: Literal["and", "or"], signs: Collection[str], step_id: str, meanings: Meanings
) -> Iterator[int]:
    """The most visits of a step, from each comparison of their number with a known number."""
    for left, sign, right in _comparisons(when, joined_by):
        count, number = meanings.get(left, left), meanings.get(right, right)
        if count != ("steps", step_id, "visits") or sign not in signs:
            continue
        # A number that visits cannot equal is not a limit: 2.5 for ==, or 1e999.
        if isinstance(number, int | float) and abs(number) < math.inf and (sign != "eq" or 1 <= number == int(number)):
            yield max(1, math.floor(number) + 1 if sign in ("lteq", "gt") else math.ceil(number))


def _comparisons(when: str | None, joined_by: Literal["and", "or"]) -> Iterator[tuple[object, str, object]]:
    """The comparisons that all hold if ``when`` does ("and"), or that each suffice for it ("or"), in both orders."""
    waiting: list[nodes.Expr] = [parse_expression(when)] if when else []
    while waiting:
        part = waiting.pop()
        if isinstance(part, nodes.And if joined_by == "and" else nodes.Or):
            waiting += [part.left, part.right]
        elif isinstance(part, nodes.Compare) and len(part.ops) == 1:
            left, sign, right = name_or_constant(part.expr), part.ops[0].op, name_or_constant(part.ops[0].expr)
            yield from [(left, sign, right), (right, _MIRRORED.get(sign, ""), left)]


def may_call(step: StepSpec, call_stack: Sequence[str]) -> bool:
    """Whether the ``call`` of ``step`` is carried out while the flows ``call_stack`` run, the caller included.

    ``depth``: how often a flow may run within a run of itself. Its first run has depth 0.
    """
    depth = depth_of(step)
    return depth is None or list(call_stack).count(step.call or "") <= depth


def depth_of(step: StepSpec) -> int | None:
    """How often the flow that the step calls may run within itself; None without a bound, or without a call."""
    return step.limits.depth if step.call is not None else None


def known_inputs(step: StepSpec, called: FlowSpec, meanings: Meanings, place: Place) -> dict[str, Any]:
    """The inputs of ``called`` with values known before the run: constants, known names of the caller, defaults.

    Raises ``DefinitionError`` at ``place`` for a value of the wrong type.
    """
    known = {name: spec.default for name, spec in called.inputs.items() if name not in step.with_ and not spec.required}
    for name, value in step.with_.items():
        if (given := known_value(value, meanings)) is not UNKNOWN:
            try:
                known |= resolve_inputs(called.name, {name: called.inputs[name]}, {name: given})
            except UsageError as error:
                raise (place / "with" / name).error(str(error), error.hint) from error
    return known
