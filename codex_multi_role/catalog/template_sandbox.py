"""The Jinja2 environment for prompts, values and conditions. Importing this imports Jinja2: see `templates`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import wraps
from itertools import count
from operator import attrgetter, eq, ge, gt, le, lt, ne
from typing import Any

from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.sandbox import ImmutableSandboxedEnvironment

from codex_multi_role.catalog.flow_expressions import written
from codex_multi_role.catalog.unknown_values import Placeholder, UnknownValue, absorbed, note_operation

MAX_CHARACTERS = 1024 * 1024  # Codex accepts no longer prompt
MAX_VALUE_CHARACTERS = 16 * MAX_CHARACTERS
"""Of all texts in one value, which may be passed to a check that can take more than a prompt."""
MAX_VALUES = 200_000
_MAX_BITS = 4096
_WIDENING_METHODS = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs"})
_WIDENING_FILTERS = ("center", "indent", "slice", "batch")
# A width of seven digits, or one given by an argument: in "%…" % x, and in "{:…}".format(x).
_WIDE_PERCENT = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*(?:[0-9]{7}|\*)")
_READABLE = (Iterable, Mapping, Undefined, bool, date, float, int, type(None))
_WIDE_FIELD = re.compile(r"\{[^{}]*:[^{}]*(?:[0-9]{7}|\{)")


class _Method(StrictUndefined):
    """A method that a template names: it can be called, and is nothing else.

    Where an answer lacks ``items``, or a task is a text instead of a mapping with a ``title``, that is missing.
    """

    __slots__ = ("function",)
    function: Callable[..., Any]


class _OwnOperators(CodeGenerator):
    """``~`` joins its operands as a text shows them; comparisons and sums go through `TemplateSandbox.operation`."""

    numbers = count()
    """Tell the operations of all templates apart."""

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802 - as Jinja2 names it
        """The middle of ``a < b < c`` is evaluated twice, which changes nothing."""
        left = node.expr
        for number, operand in enumerate(node.ops):
            self.write(" and " if number else "(")
            self._operation(operand.op, left, operand.expr, frame)
            left = operand.expr
        self.write(")")

    def visit_Add(self, node: nodes.BinExpr, frame: Frame) -> None:  # noqa: N802 - as Jinja2 names it
        self._operation("add", node.left, node.right, frame)

    def _operation(self, sign: str, left: nodes.Expr, right: nodes.Expr, frame: Frame) -> None:
        shown = (sign, written(left), written(right), isinstance(left, nodes.Const))
        self.write(f"environment.operation({next(self.numbers)}, {shown!r}, ")
        self.visit(left, frame)
        self.write(", ")
        self.visit(right, frame)
        self.write(")")

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - as Jinja2 names it
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Strict, unescaped and deterministic: a condition evaluated again on resume gives the same result."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    code_generator_class = _OwnOperators

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, finalize=text_of)
        del self.filters["random"]
        del self.globals["lipsum"]
        self.filters |= {name: _of_bounded_width(self.filters[name]) for name in _WIDENING_FILTERS}
        self.filters["format"] = lambda text, *given, **named: self.call_binop(None, "%", str(text), named or given)
        indent = self.filters["indent"]  # adds to a list in place
        self.filters["indent"] = lambda value, *given, **named: indent(text_of(value), *given, **named)
        self.filters |= {"string": text_of, "join": _joining(self.filters["join"]), "tojson": _as_json}
        filters = {name: _of_values(function) for name, function in self.filters.items()}
        self.filters = {name: _with_unknown(name, each, attrgetter("_filtered")) for name, each in filters.items()}
        tests: dict[str, Any] = {**self.tests, "in": _is_in}
        self.tests = {name: _with_unknown(name, each, attrgetter("_tested")) for name, each in tests.items()}

    def operation(self, number: int, shown: tuple[str, str, str, bool], left: object, right: object) -> object:
        """A comparison or a sum, as an `Operation` begins. ``number``: which of all templates."""
        note_operation(number, shown, left, right)
        return self.call_binop(None, "+", left, right) if shown[0] == "add" else COMPARISONS[shown[0]](left, right)

    @staticmethod
    def concatenated(parts: Iterable[object]) -> str:
        return "".join(map(text_of, parts))

    def call(self, context: Any, function: Any, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """Refuse ``"x".ljust(10**9)``."""
        function = function.function if isinstance(function, _Method) else function
        if isinstance(function, Placeholder):
            return function(*arguments, **named)
        name = getattr(function, "__name__", "")
        if name in _WIDENING_METHODS:
            _refuse_width(*arguments)
        if name == "format":
            arguments, named = tuple(map(plain, arguments)), plain(named)
            if (made := absorbed(name, [*arguments, named])) is not None:
                return made
        if name == "replace":
            _refuse_growth(function.__self__, *arguments)
        try:
            return super().call(context, function, *arguments, **named)
        except TypeError:
            if (made := absorbed(name, [*arguments, named])) is not None:
                return made
            raise

    def wrap_str_format(self, value: Any) -> Any:  # noqa: ANN401
        """Refuse ``"{:>1000000000}".format(1)``; the values of a format are bounded already."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _refuse_wide_format(_WIDE_FIELD, value.__self__)
        return wrapped

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - as Jinja2 declares it
        """A mapping's keys take precedence over its methods: ``steps.plan.items`` is what the step said."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, Placeholder) and not attribute.startswith("_"):  # nothing of it is unsafe
            return obj._part(attribute)
        return self._value(obj, attribute, super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401 - as Jinja2 declares it
        if isinstance(argument, UnknownValue) and not isinstance(obj, UnknownValue):
            return absorbed(f"[{argument!r}]", [argument])
        return self._value(obj, argument, super().getitem(obj, argument))

    @staticmethod
    def _value(obj: object, name: object, found: Any) -> Any:  # noqa: ANN401 - whatever was found
        if not callable(found) or isinstance(found, Undefined | Placeholder):
            return found
        method = _Method(obj=obj, name=str(name))
        method.function = found
        return method

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Refuse ``"x" * 10**9`` and ``9 ** 99999`` before they use up the memory."""
        if operator == "*" and _repeats_too_often(left, right):
            raise SecurityError(f"the result of * would be larger than {MAX_CHARACTERS}")
        if operator == "**" and isinstance(left, int) and left.bit_length() * abs(right) > _MAX_BITS:
            raise SecurityError("the result of ** would be too large")
        if operator == "+" and _is_sized(left) and _is_sized(right) and len(left) + len(right) > MAX_CHARACTERS:
            raise SecurityError(f"the result of + would be larger than {MAX_CHARACTERS}")
        if operator == "%" and isinstance(left, str) and (made := absorbed(operator, [right])) is not None:
            return made
        if operator == "%" and isinstance(left, str):
            _refuse_wide_format(_WIDE_PERCENT, left)
            right = _in_format(right)
        return super().call_binop(context, operator, left, right)

    def whole_expression(self, template: str) -> str | None:
        """``a.b`` for a template that is only ``{{ a.b }}``, None for any other."""
        text = template.strip()
        if not (text.startswith("{{") and text.endswith("}}")):
            return None
        tokens = [(kind, text) for _, kind, text in self.lex(text)]
        kinds = [kind for kind, _ in tokens]
        if kinds[:1] == ["variable_begin"] and kinds[-1] == "variable_end" and kinds.count("variable_end") == 1:
            return "".join(text for _, text in tokens[1:-1])
        return None


class _Budget:
    """What one value may still hold: ``take`` raises beyond it."""

    def __init__(self, characters: int) -> None:
        self._characters = self._allowed = characters
        self._values = MAX_VALUES

    def take(self, value: object) -> None:
        self._values -= 1
        if self._values < 0:
            raise ValueError(f"gives more than {MAX_VALUES} values")
        self._characters -= len(value) if isinstance(value, str) else 0
        if self._characters < 0:
            raise ValueError(f"gives more than {self._allowed} characters")


def plain(value: object, budget: _Budget | None = None) -> Any:  # noqa: ANN401 - whatever the author computed
    """``value`` as JSON-shaped data that can be recorded. Raises for undefined values and for other objects."""
    budget = _Budget(MAX_VALUE_CHARACTERS) if budget is None else budget
    budget.take(value)
    if isinstance(value, Placeholder):
        return value
    if isinstance(value, Undefined):
        str(value)  # a StrictUndefined explains itself by raising
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | date):
        return str(value)  # the filter "escape" returns a subclass of str
    if isinstance(value, Mapping):
        return {str(key): plain(item, budget) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item, budget) for item in value]
    raise TypeError(f"gives a {type(value).__name__}, not a value that YAML can hold")


def text_of(value: object) -> str:
    """``value`` within a text: texts and numbers as they are, everything else as JSON.

    A choice without ``else`` (``{{ "," if more }}``) is an empty text. Raises like `plain`, also for more than a prompt
    can hold.
    """
    if isinstance(value, Undefined | Placeholder):
        return str(value)
    known = plain(value, _Budget(MAX_CHARACTERS))
    if isinstance(known, str) or (isinstance(known, int | float) and not isinstance(known, bool)):
        return str(known)
    return json.dumps(known, ensure_ascii=False, default=str)


def _with_unknown(name: str, function: Callable[..., Any], unknown: Callable[..., Any]) -> Callable[..., Any]:
    """The filter or test ``function``, extended to unknown values."""
    position = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def extended(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        value = arguments[position]
        if isinstance(value, Placeholder):
            return unknown(value)(name, function, arguments, named)
        return function(*arguments, **named)

    return extended


def _is_in(value: object, container: Any) -> bool:  # noqa: ANN401
    return value._within(container) if isinstance(value, UnknownValue) else value in container


COMPARISONS: Mapping[str, Callable[[Any, Any], object]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "lteq": le,
    "gt": gt,
    "gteq": ge,
    "in": _is_in,
    "notin": lambda value, container: not _is_in(value, container),
}


def _as_json(value: object, indent: int | None = None) -> str:
    """Plain JSON, as a model reads it; Jinja's own is escaped for HTML."""
    return json.dumps(plain(value), ensure_ascii=False, indent=indent)


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter ``function``, for values only, and with lists instead of iterators, which can be read only once."""
    position = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def filtered(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        value = arguments[position]
        if not isinstance(value, _READABLE):
            plain(value)  # explains itself by raising
        if function.__name__ == "do_replace":
            _refuse_growth(*arguments[position:])
        found = function(*arguments, **named)
        return list(found) if isinstance(found, Iterator) else found

    return filtered


def _joining(function: Callable[..., str]) -> Callable[..., str]:
    """The filter ``join`` over what a text shows of each value."""

    @wraps(function)
    def join(evaluation: Any, values: Iterable[Any], separator: str = "", attribute: Any = None) -> str:  # noqa: ANN401
        if attribute is not None:
            values = map(make_attrgetter(evaluation.environment, attribute), values)
        parts = list(map(text_of, values))
        if sum(map(len, parts)) + len(parts) * len(separator) > MAX_CHARACTERS:
            raise SecurityError(f"the result would be larger than {MAX_CHARACTERS}")
        return function(evaluation, parts, separator)

    return join


def _in_format(right: Any) -> Any:  # noqa: ANN401 - as `call_binop`
    """The right side of ``"%s" % x``: numbers and texts as they are, which ``%d`` needs."""
    if isinstance(right, Mapping):
        return {key: _in_format(value) for key, value in right.items()}
    if isinstance(right, tuple):
        return tuple(map(_in_format, right))
    return right if isinstance(right, str | int | float) and not isinstance(right, bool) else text_of(right)


def _is_sized(value: object) -> bool:
    return isinstance(value, str | list | tuple)


def _refuse_growth(text: object, old: object = "", new: object = "", *_: object) -> None:
    """Refuse a replacement whose result would be larger than a prompt."""
    if len(str(text)) + str(text).count(str(old)) * len(str(new)) > MAX_CHARACTERS:
        raise SecurityError(f"the result would be larger than {MAX_CHARACTERS}")


def _of_bounded_width(function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter ``function``, with results no wider than a prompt."""

    @wraps(function)
    def bounded(value: Any, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        _refuse_width(*arguments, *named.values())
        return function(value, *arguments, **named)

    return bounded


def _refuse_width(*arguments: object) -> None:
    if any(isinstance(each, int) and each > MAX_CHARACTERS for each in arguments):
        raise SecurityError(f"the result would be larger than {MAX_CHARACTERS}")


def _refuse_wide_format(wide: re.Pattern[str], text: str) -> None:
    if wide.search(text):
        raise SecurityError("the format is too wide, or its width is not a number")


def _repeats_too_often(left: object, right: object) -> bool:
    sized, times = (left, right) if isinstance(right, int) else (right, left)
    return isinstance(sized, str | list | tuple) and isinstance(times, int) and len(sized) * times > MAX_CHARACTERS
