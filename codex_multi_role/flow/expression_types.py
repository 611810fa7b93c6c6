"""What is known before a run of the values of expressions, and the comparisons whose result never changes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from jinja2 import TemplateSyntaxError, nodes

from codex_multi_role.catalog import templates
from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    name_or_constant,
    parse_expression,
    parse_template,
    whole_expression,
)
from codex_multi_role.reading.nearest import did_you_mean
from codex_multi_role.reading.places import Place
from codex_multi_role.reading.value_types import ANY, BOOLEAN, LIST, MAPPING, NUMBER, TEXT, Fields, ValueType

_OF_FILTERS = dict.fromkeys(("count", "float", "int", "length", "round", "wordcount"), NUMBER)
_OF_FILTERS |= dict.fromkeys(("capitalize", "join", "lower", "string", "title", "tojson", "trim", "upper"), TEXT)
_OF_FILTERS["list"] = LIST
_SIGNS = {"lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}


def type_of_value(value: object, types: Fields) -> ValueType:
    """The type of ``value`` once its templates are rendered."""
    if not isinstance(value, str) or not has_expressions(value):
        return ValueType.of_constant(value)
    try:
        expression = whole_expression(value)
        return type_of(parse_expression(expression), types) if expression is not None else _of_text(value)
    except TemplateSyntaxError:  # reported with its place by whoever checks the template
        return ANY


def _of_text(text: str) -> ValueType:
    parse_template(text)
    return TEXT


def type_of(part: nodes.Node, types: Fields) -> ValueType:
    """The type of an expression's value, if it has one; `ANY` if nothing is known."""
    match part:
        case nodes.Const(value=value):
            return ValueType.of_constant(value)
        case nodes.Name(name=name):
            return types.get(name, ANY)
        case nodes.Getattr(node=owner, attr=key) | nodes.Getitem(node=owner, arg=nodes.Const(value=key)):
            return type_of(owner, types).fields.get(key, ANY)
        case nodes.Filter(node=nodes.Expr() as filtered, name="default" | "d", args=[otherwise, *_]):
            return type_of(filtered, types) | type_of(otherwise, types)
        case nodes.Filter(name=name):
            return _OF_FILTERS.get(name, ANY)
        case nodes.And(left=left, right=right) | nodes.Or(left=left, right=right):
            return type_of(left, types) | type_of(right, types)
        case nodes.CondExpr(expr1=nodes.Expr() as then, expr2=nodes.Expr() as otherwise):
            return type_of(then, types) | type_of(otherwise, types)
        case nodes.Not() | nodes.Compare() | nodes.Test():
            return BOOLEAN
        case nodes.Sub() | nodes.Div() | nodes.FloorDiv() | nodes.Neg():
            return NUMBER
        case nodes.List() | nodes.Tuple():
            return LIST
        case nodes.Dict():
            return MAPPING
        case nodes.Concat():
            return TEXT
    return ANY


def check_template(text: object, where: Place, types: Fields) -> None:
    """As `templates.check_template`, and for comparisons that the types decide before a run."""
    templates.check_template(text, where, types, _never_decided)


def check_expression(expression: str, where: Place, types: Fields) -> None:
    """Like `check_template`, for a ``when``: an expression without braces."""
    templates.check_expression(expression, where, types, _never_decided)


def _never_decided(text: str, types: Fields) -> Iterator[tuple[str, str]]:
    """Message and hint for each comparison that is never true, always true, or always fails, and sums that do."""
    syntax = parse_template(text)
    for added in syntax.find_all(nodes.Add):
        one, other = type_of(added.left, types), type_of(added.right, types)
        if not one.can_be_less(other):
            kinds = f"{one.kinds_in_words} and {other.kinds_in_words}"
            yield f"{_shown(added.left)} + {_shown(added.right)} adds {kinds}", ""
    for part in syntax.find_all(nodes.Compare):
        left = part.expr
        for operand in part.ops:
            yield from _problems(left, operand, types)
            left = operand.expr


def _problems(left: nodes.Expr, operand: nodes.Operand, types: Fields) -> Iterator[tuple[str, str]]:
    right, sign = operand.expr, operand.op
    one, other = type_of(left, types), type_of(right, types)
    if sign in _SIGNS and not one.can_be_less(other):
        compared = f"{one.kinds_in_words} with {other.kinds_in_words}"
        yield f"{_shown(left)} {_SIGNS[sign]} {_shown(right)} compares {compared}", ""
    if sign in ("in", "notin"):
        other = _one_of(right, types)
    null = frozenset({"null"})  # such a comparison asks whether there is a value, whoever may know that
    if sign in ("eq", "ne", "in", "notin") and not one.can_equal(other) and null not in (one.kinds, other.kinds):
        of_right = (right, left, other) if isinstance(left, nodes.Const) else (left, right, one)
        yield _unequal(*of_right, is_always=sign.startswith("n"))


def _one_of(container: nodes.Expr, types: Fields) -> ValueType:
    """The type of the items of a written list that is not empty."""
    items = container.items if isinstance(container, nodes.List | nodes.Tuple) else []
    return reduce(or_, (type_of(item, types) for item in items)) if items else ANY


def _unequal(part: nodes.Expr, other: nodes.Expr, known: ValueType, *, is_always: bool) -> tuple[str, str]:
    compared = name_or_constant(other)
    named = did_you_mean(str(compared), map(str, known.values or ())) if isinstance(compared, str) else ""
    word = "is always different from" if is_always else "is never"
    return f"{_shown(part)} {word} {_shown(other)}: it is {known.in_words}{named}", _hint(part)


def _hint(part: nodes.Expr) -> str:
    """Which of the two words that a step has is meant: the engine's, or its role's or check's."""
    match name_or_constant(part):
        case ("steps", step, "status"):
            return f"status is how the step went; what its role or check said is steps.{step}.verdict."
        case ("steps", step, "verdict"):
            return f"verdict is what the role or check said; how the step went is steps.{step}.status."
    return ""


def _shown(part: nodes.Expr) -> str:
    match part:
        case nodes.List(items=items) | nodes.Tuple(items=items):
            return f"[{', '.join(map(_shown, items))}]"
        case nodes.Filter(node=nodes.Expr() as filtered, name=name):
            return f"{_shown(filtered)} | {name}"
    named = name_or_constant(part)
    return ".".join(map(str, named)) if isinstance(named, tuple) else "…" if named is None else repr(named)
