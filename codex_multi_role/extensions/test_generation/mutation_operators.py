"""The small changes that make a mutant, by kind of libcst node.

They are those of mutmut 3.8, in its order and under its names, because a mutant's id is its number among the changes of
a line, and recorded runs have such ids. ``libcst.matchers`` is not used: it takes as long to import as all the rest.
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any

import libcst as cst

Nodes = Iterator[cst.CSTNode]
NodeType = type[cst.CSTNode]


def _both_ways(*pairs: tuple[Any, Any]) -> dict[Any, Any]:
    return {**dict(pairs), **{second: first for first, second in pairs}}


_KEYWORDS: Mapping[NodeType, NodeType] = {
    **_both_ways((cst.Is, cst.IsNot), (cst.In, cst.NotIn)),
    cst.Break: cst.Return,
    cst.Continue: cst.Break,
}
_OPERATORS: Mapping[NodeType, NodeType] = {
    **_both_ways(
        (cst.Plus, cst.Minus),
        (cst.Add, cst.Subtract),
        (cst.Multiply, cst.Divide),
        (cst.LeftShift, cst.RightShift),
        (cst.BitAnd, cst.BitOr),
        (cst.AddAssign, cst.SubtractAssign),
        (cst.MultiplyAssign, cst.DivideAssign),
        (cst.LeftShiftAssign, cst.RightShiftAssign),
        (cst.BitAndAssign, cst.BitOrAssign),
        (cst.LessThan, cst.LessThanEqual),
        (cst.GreaterThan, cst.GreaterThanEqual),
        (cst.Equal, cst.NotEqual),
        (cst.And, cst.Or),
    ),
    cst.FloorDivide: cst.Divide,
    cst.Modulo: cst.Divide,
    cst.BitXor: cst.BitAnd,
    cst.Power: cst.Multiply,
    cst.FloorDivideAssign: cst.DivideAssign,
    cst.ModuloAssign: cst.DivideAssign,
    cst.BitXorAssign: cst.BitAndAssign,
    cst.PowerAssign: cst.MultiplyAssign,
}
_Operation = cst.BinaryOperation | cst.UnaryOperation | cst.BooleanOperation | cst.ComparisonTarget | cst.AugAssign
_NAMES = {**_both_ways(("True", "False")), "deepcopy": "copy"}
_METHODS: Mapping[str, str] = _both_ways(
    ("lower", "upper"),
    ("lstrip", "rstrip"),
    ("find", "rfind"),
    ("ljust", "rjust"),
    ("index", "rindex"),
    ("removeprefix", "removesuffix"),
    ("partition", "rpartition"),
)
_SPLITS: Mapping[str, str] = _both_ways(("split", "rsplit"))

_RAW_TEXT = re.compile(r"((?<!\\)[^\\]+)")
_TEXT = re.compile(
    rf"\\x[0-9a-fA-F]{{2}}|\\u[0-9a-fA-F]{{4}}|\\U[0-9a-fA-F]{{8}}|\\N\{{[^}}]+\}}|\\.|{_RAW_TEXT.pattern}"
)
"""The letters of a literal outside its escape sequences, which mean something else in another case."""


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _number(node: cst.Integer | cst.Float | cst.Imaginary) -> Nodes:
    value = node.evaluated_value + (1j if isinstance(node, cst.Imaginary) else 1)
    if isinstance(value, int) or not cmath.isinf(value):  # no literal means infinity
        yield node.with_changes(value=repr(value))


def _string(node: cst.SimpleString) -> Nodes:
    if len(node.quote) == 3:  # mostly a document: nobody tests its words
        return
    start = len(node.prefix) + 1
    opening, text, closing = node.value[:start], node.value[start:-1], node.value[-1]
    letters = _RAW_TEXT if "r" in node.prefix.lower() else _TEXT
    for new in (f"XX{text}XX", *(_in_case(case, text, letters) for case in (str.lower, str.upper))):
        if new != text:
            yield node.with_changes(value=f"{opening}{new}{closing}")


def _in_case(case: Callable[[str], str], text: str, letters: re.Pattern[str]) -> str:
    return letters.sub(lambda found: case(found[1] or "") or found[0], text)


def _name(node: cst.Name) -> Nodes:
    if node.value in _NAMES:
        yield node.with_changes(value=_NAMES[node.value])


def _assignment(node: cst.Assign | cst.AnnAssign) -> Nodes:
    if node.value:
        yield node.with_changes(value=cst.SimpleString('""') if _is_none(node.value) else cst.Name("None"))


def _augmented_assignment(node: cst.AugAssign) -> Nodes:
    yield cst.Assign([cst.AssignTarget(node.target)], node.value, node.semicolon)


def _unary_operation(node: cst.UnaryOperation) -> Nodes:
    if isinstance(node.operator, cst.Not | cst.BitInvert):
        yield node.expression


def _keys_of_dict(node: cst.Call) -> Nodes:
    if not isinstance(node.func, cst.Name) or node.func.value != "dict":
        return
    for index, arg in enumerate(node.args):
        if not arg.keyword:
            return
        new = arg.with_changes(keyword=arg.keyword.with_changes(value=f"{arg.keyword.value}XX"))
        yield node.with_changes(args=[*node.args[:index], new, *node.args[index + 1 :]])


def _arguments(node: cst.Call) -> Nodes:
    for index, arg in enumerate(node.args):
        if not arg.star and not _is_none(arg.value):
            new = arg.with_changes(value=cst.Name("None"))
            yield node.with_changes(args=[*node.args[:index], new, *node.args[index + 1 :]])
    if len(node.args) > 1:
        yield from _each_left_out(node, "args")


def _each_left_out(node: cst.CSTNode, field: str) -> Nodes:
    parts = getattr(node, field)
    for index in range(len(parts)):
        yield node.with_changes(**{field: [*parts[:index], *parts[index + 1 :]]})


def _method(node: cst.Call, others: Mapping[str, str]) -> Nodes:
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in others:
        yield node.with_deep_changes(node.func.attr, value=others[node.func.attr.value])


def _string_method(node: cst.Call) -> Nodes:
    yield from _method(node, _METHODS)


def _splitting_method(node: cst.Call) -> Nodes:
    """Without a limit, both methods split alike."""
    if len(node.args) == 2 or any(arg.keyword and arg.keyword.value == "maxsplit" for arg in node.args):
        yield from _method(node, _SPLITS)


def _lambda(node: cst.Lambda) -> Nodes:
    yield node.with_changes(body=cst.Integer("0") if _is_none(node.body) else cst.Name("None"))


def _keyword(node: cst.CSTNode) -> Nodes:
    if new := _KEYWORDS.get(type(node)):
        yield new()


def _operator(node: _Operation) -> Nodes:
    if new := _OPERATORS.get(type(node.operator)):
        yield node.with_changes(operator=new())


def _match(node: cst.Match) -> Nodes:
    if len(node.cases) > 1:
        yield from _each_left_out(node, "cases")


def _conditional(node: cst.IfExp) -> Nodes:
    """Either branch only. In parentheses, because `and` binds more tightly than an `or` in the condition."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    for operator, literal in ((cst.And(), "False"), (cst.Or(), "True")):
        yield node.with_changes(test=cst.BooleanOperation(test, operator, cst.Name(literal)))


MUTATION_OPERATORS: tuple[tuple[type[cst.CSTNode] | UnionType, str, Callable[[Any], Nodes]], ...] = (
    (cst.BaseNumber, "number", _number),
    (cst.SimpleString, "string", _string),
    (cst.Name, "name", _name),
    (cst.Assign | cst.AnnAssign, "assignment", _assignment),
    (cst.AugAssign, "augmented_assignment", _augmented_assignment),
    (cst.UnaryOperation, "remove_unary_ops", _unary_operation),
    (cst.Call, "dict_arguments", _keys_of_dict),
    (cst.Call, "arg_removal", _arguments),
    (cst.Call, "symmetric_string_methods_swap", _string_method),
    (cst.Call, "unsymmetrical_string_methods_swap", _splitting_method),
    (cst.Lambda, "lambda", _lambda),
    (cst.CSTNode, "keywords", _keyword),
    (_Operation, "swap_op", _operator),
    (cst.Match, "match", _match),
    (cst.IfExp, "if_exp", _conditional),
)
"""In the order in which the changes of a line are numbered."""
