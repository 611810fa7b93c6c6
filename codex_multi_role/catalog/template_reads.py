"""What a template or a condition reads: the paths of names, whether it always does, and what it does with the values.

A read is certain if evaluating the template always reads it without a guard. What stands behind a condition, in a block
or behind ``and`` and ``or``, is not, nor is what ``default`` or ``is defined`` guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import EllipsisType, MappingProxyType
from typing import Final, NamedTuple

from jinja2 import nodes

from codex_multi_role.catalog.flow_expressions import (
    has_expressions,
    local_names,
    name_or_constant,
    parse_expression,
    parse_template,
    whole_expression,
)

ITEM: Final = ...
"""The part of a path that stands for every element of a list."""
Path = tuple[str | int | EllipsisType, ...]
JSON_TYPES = frozenset({"array", "boolean", "number", "object", "string"})


class ValueUse(Enum):
    """What a template does with a value, and the JSON type that this needs, if any.

    ``ANY``: several types are expected, such as where the type is tested. ``PASSED`` to something else as it is;
    ``FILLED`` into a text; ``COUNTED``: given to a filter for lists that accepts texts as well.
    """

    ANY = ""
    PASSED = "passed"
    FILLED = "filled in"
    COUNTED = "counted"
    DECIDED = "decided"
    NUMBER = "number"
    EQUAL_NUMBER = "equal number"
    TEXT = "string"
    EQUAL_TEXT = "equal string"
    EQUAL_BOOLEAN = "equal boolean"
    MAPPING = "object"
    WALKED = "walked array"
    ITEMS = "array"

    @property
    def type(self) -> str:
        kind = self.value.rpartition(" ")[2]
        return kind if kind in JSON_TYPES else ""

    @property
    def fails_otherwise(self) -> bool:
        """Whether the template cannot be evaluated with a value of another type."""
        return self.value in JSON_TYPES


class Read(NamedTuple):
    """``compared``: the constants with which the value is compared. ``at``: the template's keys within a value."""

    path: Path
    use: ValueUse
    is_certain: bool
    compared: tuple[object, ...] = ()
    at: tuple[str | int, ...] = ()


class ReachedValue(NamedTuple):
    """A value that an expression reaches. ``is_certain``: whether what is read of it is always read."""

    path: Path
    is_certain: bool = True

    def at(self, *parts: str | int | EllipsisType) -> ReachedValue:
        return self._replace(path=(*self.path, *parts))


UNKNOWN = ReachedValue((), is_certain=False)


class TemplateScope(NamedTuple):
    """``names``: those that stand for a path; any other name is the start of one. ``numbers``: the names of numbers."""

    names: Mapping[str, ReachedValue] = MappingProxyType({})
    is_certain: bool = True
    numbers: frozenset[object] = frozenset()

    def unsure(self) -> TemplateScope:
        """The scope of a part that may not be evaluated."""
        names = {name: reached._replace(is_certain=False) for name, reached in self.names.items()}
        return self._replace(names=names, is_certain=False)

    def named(self, target: nodes.Node, reached: ReachedValue | None) -> TemplateScope:
        """The scope with what a loop or an assignment calls ``target``."""
        if isinstance(target, nodes.Name):
            return self._replace(names={**self.names, target.name: reached or UNKNOWN})
        return self._replace(names={**self.names, **{each.name: UNKNOWN for each in target.find_all(nodes.Name)}})


GUARDS = frozenset({"default", "d"})
TESTS_OF_TYPES = frozenset(
    {"boolean", "callable", "false", "float", "integer", "iterable", "mapping", "none", "number"}
)
TESTS_OF_TYPES |= {"sequence", "string", "true"}
COMPARISONS = {"eq": "eq", "equalto": "eq", "==": "eq", "ne": "eq", "!=": "eq"}
COMPARISONS |= dict.fromkeys(("lt", "lessthan", "<", "le", "lteq", "<=", "gt", "greaterthan", ">", "ge", "gteq"), "lt")
SAME_ELEMENTS = frozenset({"list", "sort", "reverse", "unique", *GUARDS})
FEWER_ELEMENTS = frozenset({"select", "reject", "selectattr", "rejectattr"})
ONE_ELEMENT = frozenset({"first", "last", "min", "max"})
BY_ATTRIBUTE = FEWER_ELEMENTS | {"map", "sort", "sum", "min", "max", "unique", "groupby", "join"}
FILTER_USES: Mapping[str, ValueUse] = {
    **dict.fromkeys(("join", "map", "sum", "groupby", *FEWER_ELEMENTS), ValueUse.WALKED),
    **dict.fromkeys(("abs", "round"), ValueUse.NUMBER),
    "dictsort": ValueUse.MAPPING,
    **dict.fromkeys(("float", "int", "tojson"), ValueUse.PASSED),
    **dict.fromkeys(("capitalize", "indent", "lower", "replace", "string", "title", "trim", "upper"), ValueUse.FILLED),
    **dict.fromkeys(
        ("count", "first", "last", "length", "list", "max", "min", "reverse", "sort", "unique"), ValueUse.COUNTED
    ),
}
"""Filters that fail if there is no value."""
TEXT_METHODS = frozenset(dir(str)) - frozenset(dir(dict)) - frozenset(dir(list))
MAPPING_METHODS = frozenset({"get", "items", "keys", "values"})


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


def elements_of(template: object, scope: TemplateScope) -> ReachedValue | None:
    """What stands for every element of the list that ``template``, one whole ``{{ … }}``, gives; None if unknown."""
    whole = whole_expression(template) if isinstance(template, str) else None
    return None if whole is None else _element(parse_expression(whole), scope)


def sized_by(template: object, scope: TemplateScope) -> bool:
    """Whether the list that ``template`` gives has as many elements as the value that it reads."""
    whole = whole_expression(template) if isinstance(template, str) else None
    part = None if whole is None else parse_expression(whole)
    while isinstance(part, nodes.Filter) and part.name in ("list", "sort", "reverse", *GUARDS):
        part = part.node
    return part is not None and _is_plain(part) and _reached(part, scope) is not None


def path_text(path: Path) -> str:
    """``tasks[].title``."""
    parts = ("[]" if part is ITEM else f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


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
                scope = scope.named(target, _reached(given, scope.unsure()))
            case _:
                yield from _inside(part, scope)


def _conditional(part: nodes.If, scope: TemplateScope) -> Iterator[Read]:
    yield from _reads(part.test, scope, ValueUse.DECIDED)
    for each in (part.body, part.elif_, part.else_):
        yield from _block(list(each), scope.unsure())


def _loop(part: nodes.For, scope: TemplateScope) -> Iterator[Read]:
    yield from _reads(part.iter, scope, ValueUse.WALKED)
    inner = scope.unsure().named(part.target, _element(part.iter, scope))  # evaluated once per item, or never
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
    reached = _reached(part, scope)
    if reached is not None and reached.path:
        yield Read(reached.path, use, reached.is_certain)
    match part:
        case nodes.Name() | nodes.Const() | nodes.TemplateData():
            return
        case nodes.Getattr(node=owner):
            yield from () if reached is not None and _is_plain(part) else _reads(owner, scope, ValueUse.PASSED)
        case nodes.Getitem(node=owner, arg=key):
            if reached is None or not _is_plain(part):
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
                yield from _reads(each, scope, _operand(part, other, scope))
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


def _is_plain(part: nodes.Node) -> bool:
    """Whether it is a name and constant keys, so that its path says all that it reads."""
    match part:
        case nodes.Name():
            return True
        case nodes.Getattr(node=owner) | nodes.Getitem(node=owner, arg=nodes.Const(value=str() | int())):
            return _is_plain(owner)
    return False


def _reached(part: nodes.Node, scope: TemplateScope) -> ReachedValue | None:
    """The path of a value; None if it is not a part of another one."""
    match part:
        case nodes.Name(name=name):
            return scope.names.get(name, ReachedValue((name,), scope.is_certain))
        case nodes.Getattr(node=owner, attr=key):
            return _below(_reached(owner, scope), key)
        case nodes.Getitem(node=owner, arg=nodes.Const(value=str() | int() as key)):
            if isinstance(key, str):
                return _below(_reached(owner, scope), key)
            element = _element(owner, scope)
            return element and element._replace(path=(*element.path[:-1], key), is_certain=element.is_certain)
        case nodes.Getitem(node=owner, arg=key) if not isinstance(key, nodes.Slice):
            element = _element(owner, scope)
            return element and element._replace(is_certain=False)
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in ONE_ELEMENT:
            element = _element(filtered, scope)
            return element and element._replace(is_certain=False)
    return None


def _below(owner: ReachedValue | None, key: str) -> ReachedValue | None:
    return owner.at(key) if owner is not None and owner.path else None


def _element(part: nodes.Node, scope: TemplateScope) -> ReachedValue | None:
    """What stands for every element of a list; None if they are not parts of another value."""
    match part:
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in SAME_ELEMENTS:
            return _element(filtered, scope)
        case nodes.Filter(node=nodes.Expr() as filtered, name=name) if name in FEWER_ELEMENTS:
            element = _element(filtered, scope)
            return element and element._replace(is_certain=False)
        case nodes.Filter(node=nodes.Expr() as filtered, name="map"):
            element, keys = _element(filtered, scope), _attribute(part)
            return element.at(*keys) if element is not None and keys else None
        case nodes.Getitem(node=owner, arg=nodes.Slice()):
            element = _element(owner, scope)
            return element and element._replace(is_certain=False)
    reached = _reached(part, scope)
    return reached.at(ITEM) if reached is not None and reached.path else None


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
    use = _compared_with(other, sign, scope)
    options = other.items if isinstance(other, nodes.List | nodes.Tuple) and sign == "in" else [other]
    compared = tuple(each.value for each in options if isinstance(each, nodes.Const) and sign)
    for read in _reads(part, scope, use):
        yield read._replace(compared=compared) if read.use is use else read


def _compared_with(other: nodes.Node, sign: str, scope: TemplateScope) -> ValueUse:
    match other:
        case nodes.Const(value=bool()):
            return ValueUse.EQUAL_BOOLEAN if sign == "eq" else ValueUse.PASSED
        case nodes.Const(value=str()) if sign == "eq":
            return ValueUse.EQUAL_TEXT
        case nodes.List(items=items) | nodes.Tuple(items=items) if sign == "in" and items:
            uses = {_compared_with(each, "eq", scope) for each in items}
            return uses.pop() if len(uses) == 1 else ValueUse.PASSED
    if _is_number(other, scope):
        return ValueUse.NUMBER if sign == "lt" else ValueUse.EQUAL_NUMBER if sign == "eq" else ValueUse.PASSED
    return ValueUse.PASSED


def _is_number(part: nodes.Node, scope: TemplateScope) -> bool:
    """Whether an expression is certainly a number."""
    match part:
        case nodes.Const(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            return name_or_constant(part) in scope.numbers
        case nodes.Filter(name=name):
            return name in ("length", "count", "int", "float", "abs", "round")
        case nodes.Sub() | nodes.Div() | nodes.FloorDiv() | nodes.Pow() | nodes.UnaryExpr():
            return not isinstance(part, nodes.Not)
        case nodes.Add(left=left, right=right) | nodes.Mul(left=left, right=right):
            return _is_number(left, scope) and _is_number(right, scope)
    return False


def _operand(part: nodes.BinExpr, other: nodes.Node, scope: TemplateScope) -> ValueUse:
    """What an operation needs of an operand, given the ``other`` one; ``+`` also joins lists, ``*`` repeats texts."""
    if isinstance(part, nodes.Sub | nodes.Div | nodes.FloorDiv | nodes.Pow) or _is_number(other, scope):
        return ValueUse.NUMBER
    return ValueUse.PASSED


def _tested(part: nodes.Test, tested: nodes.Expr, scope: TemplateScope) -> Iterator[Read]:
    for each in part.args:
        yield from _reads(each, scope.unsure(), ValueUse.PASSED)
    if part.name in COMPARISONS and part.args:
        yield from _read_beside(part.args[0], COMPARISONS[part.name], tested, scope)
    else:
        yield from _guarded(tested, scope, ValueUse.ANY if part.name in TESTS_OF_TYPES else ValueUse.PASSED)


def _guarded(part: nodes.Expr, scope: TemplateScope, use: ValueUse) -> Iterator[Read]:
    """The reads of an expression whose value may be missing, though not what the value would be a part of."""
    reached = _reached(part, scope)
    if reached is None or not _is_plain(part):
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
    keys, element = _attribute(part), _element(filtered, scope)
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
    use = _compared_with(part.args[2], sign, scope) if sign else ValueUse.PASSED
    return Read(reached.path, use, reached.is_certain and bool(sign or compared[0] == "in"))


def _attribute(part: nodes.Filter) -> Path:
    """The keys of the attribute that a filter takes of every element."""
    named = [pair.value for pair in part.kwargs if pair.key == "attribute"]
    given = [*named, *(part.args[:1] if part.name in FEWER_ELEMENTS else [])]
    match given:
        case [nodes.Const(value=str() as text), *_]:
            return tuple(int(key) if key.isdigit() else key for key in text.split("."))
    return ()


def _called(part: nodes.Call, scope: TemplateScope) -> Iterator[Read]:
    for each in (*part.args, *(pair.value for pair in part.kwargs)):
        yield from _reads(each, scope, ValueUse.PASSED)
    match part.node:
        case nodes.Getattr(node=owner, attr=method):
            text, mapping = method in TEXT_METHODS, method in MAPPING_METHODS
            yield from _reads(owner, scope, ValueUse.TEXT if text else ValueUse.MAPPING if mapping else ValueUse.ANY)
            owned = _reached(owner, scope)
            if method == "get" and owned is not None and part.args and isinstance(part.args[0], nodes.Const):
                yield Read((*owned.path, str(part.args[0].value)), ValueUse.PASSED, is_certain=False)
