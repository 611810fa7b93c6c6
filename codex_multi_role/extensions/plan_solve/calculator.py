"""The tool ``calculator``: evaluate one expression in Python's syntax, numbers as fractions, functions by `math`.

Nothing is evaluated as a program: a node of the tree is a number, a known name, an operator or a known function, or is
refused. The size of every intermediate result is limited, and with it the time.
"""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import Any

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.reading.python_source import NotPython, syntax_tree

DIGITS = 100
"""Digits of the longest result that is shown as it is."""
ROUNDED_DIGITS = 30
"""Digits shown of any other fraction."""
FLOAT_DIGITS = 15
"""Digits shown of what functions of `math` calculated."""
LARGEST_EXPONENT = 1_000
LARGEST_FACTORIAL = 400
MOST_PARTS = 500

_LARGEST = 10**LARGEST_EXPONENT
_ROUNDING_ERRORS = 4
"""What a function of `math` may be wrong by, in units of the last place."""


def calculate(expression: str) -> str:
    """The value of ``expression``, with all digits if it is exact. Raises ValueError with what is wrong."""
    try:
        tree = syntax_tree(expression.strip(), "eval")
        if sum(1 for _ in ast.walk(tree)) > MOST_PARTS:
            raise ValueError(f"the expression has more than {MOST_PARTS} parts")
        calculation = _Calculation(expression.strip())
        return _shown(calculation.value(tree.body), by_math=calculation.by_math)
    except NotPython as error:
        raise ValueError(f"no expression: {error.message}") from error
    except RecursionError as error:
        raise ValueError("the expression is nested too deeply") from error
    except ZeroDivisionError as error:
        raise ValueError("division by zero") from error
    except OverflowError as error:
        limits = f"10**{LARGEST_EXPONENT}, and in functions 10**{sys.float_info.max_10_exp}"
        raise ValueError(f"too large or too small: the limit is {limits}") from error


class _Calculation:
    def __init__(self, text: str) -> None:
        self._text = text
        self.by_math = False
        """Whether a part of the value is a float."""

    def value(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return _limited(self._number(node))
            case ast.Name(id=name) if name in _CONSTANTS:
                return self._kept(_CONSTANTS[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return self._kept(_OPERATORS[type(sign)](self.value(left), self.value(right)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return self._kept(_called(name, [self.value(argument) for argument in arguments]))
            case ast.BinOp(op=ast.BitXor()):
                raise ValueError("^ is not supported: write powers as **")
        shown = ast.get_source_segment(self._text, node) or ""
        raise ValueError(f"not supported: {shown[:60]!r}; the known names are: {', '.join([*_CONSTANTS, *_FUNCTIONS])}")

    def _number(self, node: ast.Constant) -> Fraction:
        """The number as written: a float would have lost digits."""
        if isinstance(node.value, int):
            return Fraction(node.value)
        try:
            number = Decimal((ast.get_source_segment(self._text, node) or "").replace("_", ""))
        except InvalidOperation as error:  # an exponent that no decimal has
            raise OverflowError from error
        if number and abs(number.adjusted()) > LARGEST_EXPONENT:
            raise OverflowError
        return Fraction(number)

    def _kept(self, result: Fraction | int | float) -> Fraction:
        self.by_math = self.by_math or isinstance(result, float)
        return _limited(_without_noise(result) if isinstance(result, float) else Fraction(result))


def _limited(value: Fraction) -> Fraction:
    """Round fractions that are too long to calculate with. Raises OverflowError."""
    numerator, denominator = abs(value.numerator), value.denominator
    if numerator > _LARGEST * denominator or 0 < numerator * _LARGEST < denominator:
        raise OverflowError
    if max(numerator, denominator) <= _LARGEST:
        return value
    return Fraction(_quotient(value, Context(prec=DIGITS + 10)))  # more digits than are shown as exact


def _without_noise(result: float) -> Fraction:
    """The short decimal that ``result`` would be without rounding errors, so that ``floor(log(125, 5))`` is 3."""
    if not math.isfinite(result):
        raise OverflowError
    short = float(f"{result:.12g}")
    return Fraction(short if abs(short - result) <= _ROUNDING_ERRORS * math.ulp(result) else result)


def _shown(value: Fraction, *, by_math: bool) -> str:
    context = Context(prec=DIGITS)
    shown = _quotient(value, context)
    if by_math or context.flags[Inexact]:
        shown = Context(prec=FLOAT_DIGITS if by_math else ROUNDED_DIGITS).plus(shown)
    shown = context.normalize(shown)
    return f"{shown:f}" if -ROUNDED_DIGITS <= shown.adjusted() < DIGITS else str(shown)


def _quotient(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _called(name: str, arguments: list[Fraction]) -> Fraction | float:
    least, most, function = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise ValueError(f"{name} takes {least if least == most else f'{least} to {most}'} numbers")
    return function(*arguments)


def _by_math(function: Callable[..., float]) -> Callable[..., float]:
    def called(*arguments: Fraction) -> float:
        try:
            result = function(*map(_for_math, arguments))
        except (ValueError, ZeroDivisionError) as error:
            raise ValueError("the result is not a real number") from error
        if not result and arguments[0] and function in (math.exp, math.pow):  # too small for a float
            raise OverflowError
        return result

    return called


def _for_math(value: Fraction) -> float:
    """A whole number stays one: logarithms accept any. Raises OverflowError."""
    number = int(value) if value.denominator == 1 else float(value)
    if value and not number:
        raise OverflowError
    return number


def _of_an_angle(function: Callable[[float], float]) -> Callable[..., float]:
    """Return 0 where the result is only what the angle lacks: ``sin(pi)``."""

    def called(angle: float) -> float:
        result = function(angle)
        return 0.0 if abs(result) <= abs(angle) * sys.float_info.epsilon else result

    return _by_math(called)


def _power(base: Fraction, exponent: Fraction) -> Fraction | float:
    if base == 0 and exponent <= 0:
        raise ZeroDivisionError if exponent else ValueError("the result is not defined")
    if exponent.denominator != 1:
        return _by_math(math.pow)(base, exponent)
    result = Fraction(1)
    for bit in f"{abs(exponent.numerator):b}":  # no intermediate result is longer than the limit
        result = _limited(result * result * (base if bit == "1" else 1))
    return result if exponent > 0 else 1 / result


def _round(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    if digits.denominator != 1 or not -DIGITS < digits < DIGITS:
        raise ValueError(f"round(x, digits): digits is a whole number below {DIGITS}")
    unit = Fraction(10) ** -int(digits)
    rounded = math.floor(abs(value) / unit + Fraction(1, 2)) * unit
    return rounded if value > 0 else -rounded


def _square_root(value: Fraction) -> Fraction | float:
    if value >= 0:
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return root
    return _by_math(math.sqrt)(value)


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= LARGEST_FACTORIAL:
        raise ValueError(f"factorial takes a whole number from 0 to {LARGEST_FACTORIAL}")
    return Fraction(math.factorial(int(value)))


_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Fraction | float]]] = {
    "abs": (1, 1, abs),
    "min": (1, MOST_PARTS, lambda *values: min(values)),
    "max": (1, MOST_PARTS, lambda *values: max(values)),
    "round": (1, 2, _round),
    "floor": (1, 1, math.floor),
    "ceil": (1, 1, math.ceil),
    "sqrt": (1, 1, _square_root),
    "factorial": (1, 1, _factorial),
    "ln": (1, 1, _by_math(math.log)),
    "log": (1, 2, _by_math(math.log)),
    **{name: (1, 1, _of_an_angle(getattr(math, name))) for name in ("sin", "cos", "tan")},
    **{name: (2, 2, _by_math(getattr(math, name))) for name in ("atan2", "hypot")},
    **{name: (1, 1, _by_math(getattr(math, name))) for name in ("cbrt", "exp", "log10", "log2", "degrees", "radians")},
    **{name: (1, 1, _by_math(getattr(math, name))) for name in ("asin", "acos", "atan", "sinh", "cosh", "tanh")},
}


LONGEST_EXPRESSION = 1_000
LONGEST_LOG = 50
"""Calculations in a handoff, the latest ones, for whoever checks it."""

_SCHEMA = {
    "type": "object",
    "required": ["expression"],
    "additionalProperties": False,
    "properties": {
        "expression": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_EXPRESSION,
            "description": "For example: round(pi * 5**2, 2)",
        },
    },
}


def _call(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    expression = str(arguments["expression"]).strip()
    try:
        result = calculate(expression)
        log = [*context.kept.get("calculations", ()), f"{expression} = {result}"]
        return ToolResult(result, keep={"calculations": log[-LONGEST_LOG:]})
    except ValueError as error:
        return ToolResult(str(error), success=False)


calculator = Tool(
    name="calculator",
    description=(
        "Evaluate one expression, exactly except for 15-digit functions and constants: + - * / // % ** and "
        "parentheses; pi, e, tau; abs, min, max, round(x, digits) (halves away from zero), floor, ceil, sqrt, cbrt, "
        "hypot, exp, ln, log(x, base), log10, log2, factorial, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, "
        "tanh, degrees, radians. Angles are in radians. No variables, no other words."
    ),
    input_schema=_SCHEMA,
    call=_call,
    pure=True,
)
