"""What a template or a condition reads: the paths of names, whether it always does, and what it does with the values.

A read is certain if evaluating the template always reads it without a guard. What stands behind a condition, in a block
or behind ``and`` and ``or``, is not, nor is what ``default`` or ``is defined`` guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jinja2 import nodes

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    local_names,
    parse_expression,
    parse_template,
    whole_expression,
)
from codex_multi_role.catalog.reached_values import (
    Path,
    ReachedValue,
    TemplateScope,
    attribute_of,
    element_of,
    is_plain,
    reached_by,
)
from codex_multi_role.catalog.value_uses import (
    BY_ATTRIBUTE,
    COMPARISONS,
    FILTER_USES,
    GUARDS,
    MAPPING_METHODS,
    TESTS_OF_TYPES,
    TEXT_METHODS,
    ValueUse,
    compared_with,
    operand_of,
)


class Read(NamedTuple):
    """``compared``: the constants with which the value is compared. ``at``: the template's keys within a value."""

    path: Path
    use: ValueUse
    is_certain: bool
    compared: tuple[object, ...] = ()
    at: tuple[str | int, ...] = ()


def reads_of(value: object, scope: TemplateScope, use: ValueUse = ValueUse.PASSED) -> Iterator[Read]:
    """The reads of the templates in ``value``, also inside of lists and mappings."""
    if isinstance(value, Mapping | list | tuple):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from (read._replace(at=(key, *read.at)) for read in reads_of(each, scope, use))
    elif isinstance(value, str) and has_expressions(value):
        whole = whole_expression(value)
        if whole is not None:
            yield from _reads(parse_expression(whole), scope, use)
        elif local_names(template := parse_template(value)).isdisjoint({"steps", "roles"}):
            yield from _block(template.body, scope)


def reads_of_condition(when: str, scope: TemplateScope) -> Iterator[Read]:
    """The reads of a ``when``."""
    return _reads(parse_expression(when), scope, ValueUse.DECIDED)


def _block(body: list[nodes.Node], scope: TemplateScope) -> Iterator[Read]:
    for part in body:
        match part:
            case nodes.Output(nodes=expressions):
                for each in expressions:
                    yield from _reads(each, scope, ValueUse.FILLED)
            case nodes.If():
                yield from _conditional(part, scope)
            case nodes.For():
                yield from _loop(part, scope)
            case nodes.Assign(target=target, node=given):
                yield from _reads(given, scope.unsure(), ValueUse.PASSED)
                scope = scope.named(target, reached_by(given, scope.unsure()))
            case _:
                yield from _inside(part, scope)


def _conditional(part: nodes.If, scope: TemplateScope) -> Iterator[Read]:
    yield from _reads(part.test, scope, ValueUse.DECIDED)
    for each in (part.body, part.elif_, part.else_):
        yield from _block(list(each), scope.unsure())


def _loop(part: nodes.For, scope: TemplateScope) -> Iterator[Read]:
    yield from _reads(part.iter, scope, ValueUse.WALKED)
    inner = scope.unsure().named(part.target, element_of(part.iter, scope))  # evaluated once per item, or never
    if part.test is not None:
        yield from _reads(part.test, inner, ValueUse.DECIDED)
        inner = inner.unsure()
    yield from _block(part.body, inner)
    yield from _block(part.else_, scope.unsure())


def _inside(part: nodes.Node, scope: TemplateScope) -> Iterator[Read]:
    """What another kind of node may read somewhere inside."""
    for child in part.iter_child_nodes():
        known = isinstance(child, nodes.Expr)
        yield from _reads(child, scope.unsure(), ValueUse.ANY) if known else _block([child], scope.unsure())


def _reads(part: nodes.Node, scope: TemplateScope, use: ValueUse) -> Iterator[Read]:
    reached = reached_by(part, scope)
    if reached is not None and reached.path:
        yield Read(reached.path, use, reached.is_certain)
    match part:
        case nodes.Name() | nodes.Const() | nodes.TemplateData():
            return
        case nodes.Getattr(node=owner):
            yield from () if reached is not None and is_plain(part) else _reads(owner, scope, ValueUse.PASSED)
        case nodes.Getitem(node=owner, arg=key):
            if reached is None or not is_plain(part):
                is_slice = isinstance(key, nodes.Slice)
                yield from _reads(owner, scope, ValueUse.FILLED if is_slice else ValueUse.ANY)
                yield from _inside(key, scope) if is_slice else _reads(key, scope, ValueUse.PASSED)
        case nodes.Not(node=inner):
            yield from _reads(inner, scope, ValueUse.DECIDED)
        case nodes.And(left=left, right=right) | nodes.Or(left=left, right=right):
            yield from _reads(left, scope, ValueUse.DECIDED)
            yield from _reads(right, scope.unsure(), use)
        case nodes.CondExpr(test=test, expr1=first, expr2=second):
            yield from _reads(test, scope, ValueUse.DECIDED)
            for each in filter(None, (first, second)):
                yield from _reads(each, scope.unsure(), use)
        case nodes.Compare():
            yield from _compared(part, scope)
        case nodes.Test(node=nodes.Expr() as tested):
            yield from _tested(part, tested, scope)
        case nodes.Filter(node=nodes.Expr() as filtered):
            yield from _filtered(part, filtered, scope, use)
        case nodes.Call():
            yield from _called(part, scope)
        case nodes.BinExpr(left=left, right=right):
            for each, other in ((left, right), (right, left)):
                yield from _reads(each, scope, operand_of(part, other, scope.numbers))
        case nodes.UnaryExpr(node=inner):
            yield from _reads(inner, scope, ValueUse.NUMBER)
        case nodes.Concat(nodes=parts):
            for each in parts:
                yield from _reads(each, scope, ValueUse.FILLED)
        case nodes.List(items=items) | nodes.Tuple(items=items):
            for each in items:
                yield from _reads(each, scope, ValueUse.PASSED)
        case nodes.Dict(items=pairs):
            for pair in pairs:
                yield from _reads(pair.value, scope, ValueUse.PASSED)
        case _:
            yield from _inside(part, scope)


def _compared(part: nodes.Compare, scope: TemplateScope) -> Iterator[Read]:
    left = part.expr
    for number, operand in enumerate(part.ops):
        inner = scope if number == 0 else scope.unsure()
        sign = {"eq": "eq", "ne": "eq", "in": "in", "notin": "in"}.get(operand.op, "lt")
        if number == 0:
            yield from _read_beside(operand.expr, sign, left, inner)
        yield from _read_beside(left, "" if sign == "in" else sign, operand.expr, inner)
        left = operand.expr


def _read_beside(other: nodes.Node, sign: str, part: nodes.Node, scope: TemplateScope) -> Iterator[Read]:
    """The reads of what is compared with ``other``."""
    use = compared_with(other, sign, scope.numbers)
    options = other.items if isinstance(other, nodes.List | nodes.Tuple) and sign == "in" else [other]
    compared = tuple(each.value for each in options if isinstance(each, nodes.Const) and sign)
    for read in _reads(part, scope, use):
        yield read._replace(compared=compared) if read.use is use else read


def _tested(part: nodes.Test, tested: nodes.Expr, scope: TemplateScope) -> Iterator[Read]:
    for each in part.args:
        yield from _reads(each, scope.unsure(), ValueUse.PASSED)
    if part.name in COMPARISONS and part.args:
        yield from _read_beside(part.args[0], COMPARISONS[part.name], tested, scope)
    else:
        yield from _guarded(tested, scope, ValueUse.ANY if part.name in TESTS_OF_TYPES else ValueUse.PASSED)


def _guarded(part: nodes.Expr, scope: TemplateScope, use: ValueUse) -> Iterator[Read]:
    """The reads of an expression whose value may be missing, though not what the value would be a part of."""
    reached = reached_by(part, scope)
    if reached is None or not is_plain(part):
        yield from _reads(part, scope, use)
    elif reached.path:
        yield Read(reached.path, use, is_certain=False)
        if len(reached.path) > 1:
            yield Read(reached.path[:-1], ValueUse.PASSED, reached.is_certain)


def _filtered(part: nodes.Filter, filtered: nodes.Expr, scope: TemplateScope, use: ValueUse) -> Iterator[Read]:
    for each in (*part.args, *(pair.value for pair in part.kwargs)):
        yield from _reads(each, scope.unsure(), ValueUse.PASSED)
    if part.name in GUARDS:
        yield from _guarded(filtered, scope, use)
        return
    needed = FILTER_USES.get(part.name)
    yield from _reads(filtered, scope if needed else scope.unsure(), needed or ValueUse.ANY)
    keys, element = attribute_of(part), element_of(filtered, scope)
    if keys and element is not None and part.name in BY_ATTRIBUTE:
        yield _read_of_elements(part, element.at(*keys), scope)


def _read_of_elements(part: nodes.Filter, reached: ReachedValue, scope: TemplateScope) -> Read:
    """The read of an attribute by ``map``, ``selectattr`` and the like."""
    compared = [each.value for each in part.args[1:2] if isinstance(each, nodes.Const)]
    is_guarded = any(pair.key == "default" for pair in part.kwargs)
    if part.name not in ("selectattr", "rejectattr"):
        return Read(reached.path, ValueUse.PASSED, reached.is_certain and not is_guarded)
    if not compared:
        return Read(reached.path, ValueUse.DECIDED, reached.is_certain)
    sign = COMPARISONS.get(str(compared[0]), "") if len(part.args) > 2 else ""
    use = compared_with(part.args[2], sign, scope.numbers) if sign else ValueUse.PASSED
    return Read(reached.path, use, reached.is_certain and bool(sign or compared[0] == "in"))


def _called(part: nodes.Call, scope: TemplateScope) -> Iterator[Read]:
    for each in (*part.args, *(pair.value for pair in part.kwargs)):
        yield from _reads(each, scope, ValueUse.PASSED)
    match part.node:
        case nodes.Getattr(node=owner, attr=method):
            text, mapping = method in TEXT_METHODS, method in MAPPING_METHODS
            yield from _reads(owner, scope, ValueUse.TEXT if text else ValueUse.MAPPING if mapping else ValueUse.ANY)
            owned = reached_by(owner, scope)
            if method == "get" and owned is not None and part.args and isinstance(part.args[0], nodes.Const):
                yield Read((*owned.path, str(part.args[0].value)), ValueUse.PASSED, is_certain=False)
