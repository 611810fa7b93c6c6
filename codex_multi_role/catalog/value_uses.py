"""What templates do with values, and the JSON types that this needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from jinja2 import nodes

from codex_multi_role.catalog.flow_expressions import name_or_constant

JSON_TYPES = frozenset({"array", "boolean", "number", "object", "string"})
Numbers = frozenset[object]
"""Names that are always numbers, as `name_or_constant` gives them."""


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


def compared_with(other: nodes.Node, sign: str, numbers: Numbers) -> ValueUse:
    match other:
        case nodes.Const(value=bool()):
            return ValueUse.EQUAL_BOOLEAN if sign == "eq" else ValueUse.PASSED
        case nodes.Const(value=str()) if sign == "eq":
            return ValueUse.EQUAL_TEXT
        case nodes.List(items=items) | nodes.Tuple(items=items) if sign == "in" and items:
            uses = {compared_with(each, "eq", numbers) for each in items}
            return uses.pop() if len(uses) == 1 else ValueUse.PASSED
    if _is_number(other, numbers):
        return ValueUse.NUMBER if sign == "lt" else ValueUse.EQUAL_NUMBER if sign == "eq" else ValueUse.PASSED
    return ValueUse.PASSED


def _is_number(part: nodes.Node, numbers: Numbers) -> bool:
    """Whether an expression is certainly a number."""
    match part:
        case nodes.Const(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            return name_or_constant(part) in numbers
        case nodes.Filter(name=name):
            return name in ("length", "count", "int", "float", "abs", "round")
        case nodes.Sub() | nodes.Div() | nodes.FloorDiv() | nodes.Pow() | nodes.UnaryExpr():
            return not isinstance(part, nodes.Not)
        case nodes.Add(left=left, right=right) | nodes.Mul(left=left, right=right):
            return _is_number(left, numbers) and _is_number(right, numbers)
    return False


def operand_of(part: nodes.BinExpr, other: nodes.Node, numbers: Numbers) -> ValueUse:
    """What an operation needs of an operand, given the ``other`` one; ``+`` also joins lists, ``*`` repeats texts."""
    if isinstance(part, nodes.Sub | nodes.Div | nodes.FloorDiv | nodes.Pow) or _is_number(other, numbers):
        return ValueUse.NUMBER
    return ValueUse.PASSED
