"""The Jinja2 environment for prompts, values and conditions. Importing this imports Jinja2: see `templates`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, Undefined
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_CHARACTERS = 1024 * 1024  # Codex accepts no longer prompt
MAX_VALUES = 200_000
_MAX_BITS = 4096
_WIDENING_METHODS = frozenset({"ljust", "rjust", "center", "zfill", "expandtabs"})
_WIDENING_FILTERS = ("center", "indent", "slice", "batch")
# A width of seven digits, or one given by an argument: in "%…" % x, and in "{:…}".format(x).
_WIDE_PERCENT = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*(?:[0-9]{7}|\*)")
_WIDE_FIELD = re.compile(r"\{[^{}]*:[^{}]*(?:[0-9]{7}|\{)")


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Strict, unescaped and deterministic: a condition evaluated again on resume gives the same result."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        del self.filters["random"]
        del self.globals["lipsum"]
        self.filters |= {name: _of_bounded_width(self.filters[name]) for name in _WIDENING_FILTERS}
        self.filters["format"] = lambda text, *given, **named: self.call_binop(None, "%", str(text), named or given)

    def call(self, context: Any, function: Any, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """Refuse ``"x".ljust(10**9)``."""
        if getattr(function, "__name__", "") in _WIDENING_METHODS:
            _refuse_width(*arguments)
        return super().call(context, function, *arguments, **named)

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
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """Refuse ``"x" * 10**9`` and ``9 ** 99999`` before they use up the memory."""
        if operator == "*" and _repeats_too_often(left, right):
            raise SecurityError(f"the result of * would be larger than {MAX_CHARACTERS}")
        if operator == "**" and isinstance(left, int) and left.bit_length() * abs(right) > _MAX_BITS:
            raise SecurityError("the result of ** would be too large")
        if operator == "%" and isinstance(left, str):
            _refuse_wide_format(_WIDE_PERCENT, left)
        return super().call_binop(context, operator, left, right)

    def whole_expression(self, template: str) -> str | None:
        """``a.b`` for a template that is only ``{{ a.b }}``, None for any other."""
        tokens = [(kind, text) for _, kind, text in self.lex(template.strip())]
        kinds = [kind for kind, _ in tokens]
        if kinds[:1] == ["variable_begin"] and kinds[-1] == "variable_end" and kinds.count("variable_end") == 1:
            return "".join(text for _, text in tokens[1:-1])
        return None


def plain(value: object, budget: Iterator[int] | None = None) -> Any:  # noqa: ANN401 - whatever the author computed
    """``value`` as JSON-shaped data that can be recorded. Raises for undefined values and for other objects.

    ``budget`` yields once for every value that is still allowed.
    """
    budget = iter(range(MAX_VALUES)) if budget is None else budget
    if next(budget, None) is None:
        raise ValueError(f"gives more than {MAX_VALUES} values")
    if isinstance(value, Undefined):
        str(value)  # a StrictUndefined explains itself by raising
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)  # the filter "escape" returns a subclass of str
    if isinstance(value, Mapping):
        return {str(key): plain(item, budget) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item, budget) for item in value]
    raise TypeError(f"gives a {type(value).__name__}, not a value that YAML can hold")


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
