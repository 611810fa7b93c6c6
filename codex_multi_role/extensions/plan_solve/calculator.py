"""The tool ``calculator``: evaluate one expression in Python's syntax, decimals by `decimal`, functions by mpmath.

Nothing is evaluated as a program: a node of the tree is a number, a known name, an operator or a known function, or is
refused. Every step of the calculation is limited in size, and so is its time.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    Underflow,
    localcontext,
)
from threading import Lock
from typing import Any

import mpmath

from codex_multi_role.checks.tools.tool import Tool, ToolContext, ToolResult
from codex_multi_role.reading.python_source import NotPython, syntax_tree

DIGITS = 100
"""Precision of every intermediate result."""
SHOWN_DIGITS = 30
"""Precision of an inexact result."""
LARGEST_EXPONENT = 1_000
LARGEST_FACTORIAL = 400
MOST_PARTS = 500

_TRAPS = [DivisionByZero, InvalidOperation, Overflow, Underflow]
_CONTEXT = Context(prec=DIGITS, Emin=-LARGEST_EXPONENT, Emax=LARGEST_EXPONENT, traps=_TRAPS)
_NEGLIGIBLE = Decimal(1).scaleb(10 - DIGITS)
_MPMATH = mpmath.MPContext()
_MPMATH.dps = DIGITS + 10
_functions_lock = Lock()
"""Guards the precision of mpmath's context, which its functions raise while they work."""


def calculate(expression: str) -> str:
    """The value of ``expression``, with all digits if it is exact. Raises ValueError with what is wrong."""
    with localcontext(_CONTEXT) as context:
        try:
            tree = syntax_tree(expression.strip(), "eval")
            if sum(1 for _ in ast.walk(tree)) > MOST_PARTS:
                raise ValueError(f"the expression has more than {MOST_PARTS} parts")
            value = _Calculation(expression.strip()).value(tree.body)
        except NotPython as error:
            raise ValueError(f"no expression: {error.message}") from error
        except RecursionError as error:
            raise ValueError("the expression is nested too deeply") from error
        except ZeroDivisionError as error:
            raise ValueError("division by zero") from error
        except (Overflow, Underflow) as error:
            raise ValueError(f"too large or too small: 10**{LARGEST_EXPONENT} is the limit") from error
        except DecimalException as error:
            raise ValueError("the result is not defined") from error
        return _shown(value, exact=not context.flags[Inexact])


class _Calculation:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, node: ast.expr) -> Decimal:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                return self._number(node)
            case ast.Name(id=name) if name in _CONSTANTS:
                return +_CONSTANTS[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return self._call(name, [self.value(argument) for argument in arguments])
            case ast.BinOp(op=ast.BitXor()):
                raise ValueError("^ is not supported: write powers as **")
        shown = ast.get_source_segment(self._text, node) or ""
        raise ValueError(f"not supported: {shown[:60]!r}; the known names are: {', '.join([*_CONSTANTS, *_FUNCTIONS])}")

    def _number(self, node: ast.Constant) -> Decimal:
        """The number as written: a float would have lost digits."""
        return +Decimal((ast.get_source_segment(self._text, node) or str(node.value)).replace("_", ""))

    def _call(self, name: str, arguments: list[Decimal]) -> Decimal:
        least, most, function = _FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise ValueError(f"{name} takes {least if least == most else f'{least} to {most}'} numbers")
        return function(*arguments)


def _shown(value: Decimal, *, exact: bool) -> str:
    if not exact:
        value = Context(prec=SHOWN_DIGITS).plus(value)
    value = value.normalize() + 0  # no -0
    return f"{value:f}" if -SHOWN_DIGITS <= value.adjusted() < DIGITS else str(value)


def _decimal(number: Any) -> Decimal:  # noqa: ANN401 - mpmath has no types
    """mpmath's result as a decimal that is marked inexact. Raises ValueError if it is not a real number."""
    if isinstance(number, _MPMATH.mpc) or not _MPMATH.isfinite(number):
        raise ValueError("the result is not a real number")
    found = +Decimal(_MPMATH.nstr(number, DIGITS + 5, strip_zeros=False))
    return found if abs(found) > _NEGLIGIBLE else Decimal(0)  # sin(pi) is 0, except for the digits that pi lacks


def _by_mpmath(name: str) -> Callable[..., Decimal]:
    def function(*arguments: Decimal) -> Decimal:
        with _functions_lock:
            return _decimal(getattr(_MPMATH, name)(*(_MPMATH.mpf(str(argument)) for argument in arguments)))

    return function


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if base < 0 and exponent != exponent.to_integral_value():
        raise ValueError("the result is not a real number")
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    return base**exponent


def _floor_division(left: Decimal, right: Decimal) -> Decimal:
    """Round down, as Python does; decimals alone round towards zero."""
    quotient, rest = divmod(left, right)
    return quotient - 1 if rest and (rest < 0) != (right < 0) else quotient


def _modulo(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise ZeroDivisionError
    rest = left % right
    return rest + right if rest and (rest < 0) != (right < 0) else rest


def _round(value: Decimal, digits: Decimal = Decimal(0)) -> Decimal:
    if digits != digits.to_integral_value() or not -DIGITS < digits < DIGITS:
        raise ValueError(f"round(x, digits): digits is a whole number below {DIGITS}")
    return _exactly(value, Decimal(1).scaleb(-int(digits)), ROUND_HALF_UP)


def _exactly(value: Decimal, unit: Decimal, rounding: str) -> Decimal:
    """Round on purpose, without marking the result inexact."""
    with localcontext() as context:
        context.prec = LARGEST_EXPONENT + DIGITS
        return value.quantize(unit, rounding)


def _square_root(value: Decimal) -> Decimal:
    if value < 0:
        raise ValueError("the result is not a real number")
    return value.sqrt()


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or not 0 <= value <= LARGEST_FACTORIAL:
        raise ValueError(f"factorial takes a whole number from 0 to {LARGEST_FACTORIAL}")
    product = Decimal(1)
    for factor in range(2, int(value) + 1):
        product *= factor
    return product


def _logarithm(value: Decimal, base: Decimal | None = None) -> Decimal:
    if value <= 0 or (base is not None and (base <= 0 or base == 1)):
        raise ValueError("the result is not a real number")
    return value.ln() if base is None else value.log10() if base == 10 else _by_mpmath("log")(value, base)


with localcontext(_CONTEXT):
    _CONSTANTS = {"pi": _decimal(+_MPMATH.pi), "e": _decimal(+_MPMATH.e), "tau": _decimal(2 * _MPMATH.pi)}
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: _floor_division,
    ast.Mod: _modulo,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Decimal]]] = {
    "abs": (1, 1, abs),
    "min": (1, MOST_PARTS, lambda *values: min(values)),
    "max": (1, MOST_PARTS, lambda *values: max(values)),
    "round": (1, 2, _round),
    "floor": (1, 1, lambda value: _exactly(value, Decimal(1), ROUND_FLOOR)),
    "ceil": (1, 1, lambda value: _exactly(value, Decimal(1), ROUND_CEILING)),
    "sqrt": (1, 1, _square_root),
    "cbrt": (1, 1, _by_mpmath("cbrt")),
    "ln": (1, 1, _logarithm),
    "log": (1, 2, _logarithm),
    "log10": (1, 1, lambda value: _logarithm(value, Decimal(10))),
    "log2": (1, 1, lambda value: _logarithm(value, Decimal(2))),
    "factorial": (1, 1, _factorial),
    **{name: (2, 2, _by_mpmath(name)) for name in ("atan2", "hypot")},
    **{
        name: (1, 1, _by_mpmath(name))
        for name in ("exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "degrees", "radians")
    },
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
        "Evaluate one expression, exactly if decimals can represent the result: + - * / // % ** and parentheses; "
        "pi, e, tau; abs, min, max, round(x, digits) (halves away from zero), floor, ceil, sqrt, cbrt, hypot, exp, ln, "
        "log(x, base), log10, log2, factorial, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, degrees, "
        "radians. Angles are in radians. No variables, no other words."
    ),
    input_schema=_SCHEMA,
    call=_call,
    pure=True,
)
