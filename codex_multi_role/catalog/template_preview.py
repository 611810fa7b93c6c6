"""Templates before their run: a value that only the run can know appears as its own path, ``<plan.todos>``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import Any, Self

from jinja2 import Undefined
from jinja2.runtime import Context

from codex_multi_role.catalog.template_sandbox import TemplateSandbox, plain

NOTHING: Mapping[str, object] = MappingProxyType({})


class Unknown(str):
    """A value that only a run can know. It reads ``<path>``, and so does what a template makes of it.

    As a condition it is true, every comparison with it is false, and a loop over it has one round. ``known``: its known
    fields. Not ``has_value``: it has no value yet, as ``default`` and ``is defined`` see it, and it is false.
    """

    path: str
    known: Mapping[str, object]
    has_value: bool

    def __new__(cls, path: str, known: Mapping[str, object] = NOTHING, *, has_value: bool = True) -> Self:
        unknown = super().__new__(cls, f"<{path}>")
        unknown.path, unknown.known, unknown.has_value = path, known, has_value
        return unknown

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - a known field may be anything
        if isinstance(key, str):
            return self.known.get(key, Unknown(f"{self.path}.{key}", has_value=self.has_value))
        return Unknown(f"{self.path}[{key if isinstance(key, int) else '…'}]", has_value=self.has_value)

    def __iter__(self) -> Iterator[str]:
        return iter([self[...]] if self.has_value else [])

    def __bool__(self) -> bool:
        return self.has_value

    def _never(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _never


class PreviewSandbox(TemplateSandbox):
    """Attributes, calls, operators and filters of an `Unknown` return another one."""

    intercepted_binops = frozenset(TemplateSandbox.default_binop_table)

    def __init__(self) -> None:
        super().__init__()
        self.filters |= {name: _of_unknown(name, each) for name, each in self.filters.items()}
        self.filters |= dict.fromkeys(("default", "d"), _default_of_unknown(self.filters["default"]))
        self.tests |= {"defined": _is_defined, "undefined": lambda value: not _is_defined(value)}

    def getattr(self, obj: object, attribute: str) -> object:
        return obj[attribute] if isinstance(obj, Unknown) else super().getattr(obj, attribute)

    def call(self, context: Context, obj: object, /, *arguments: object, **named: object) -> object:
        if isinstance(obj, Unknown):
            return Unknown(f"{obj.path}{_call_text(arguments, named)}", has_value=obj.has_value)
        return super().call(context, obj, *arguments, **named)

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Unknown(f"{_text(left)} {operator} {_text(right)}")
        return super().call_binop(context, operator, left, right)


def preview(template: object, context: Mapping[str, object]) -> Any:  # noqa: ANN401 - the author's choice
    """``template`` as rendered by `render`, as far as ``context``, which may have `Unknown` values, allows.

    Never raises: a text that fails with the stand-in for a value stays as written. One whole ``{{ … }}`` of an unknown
    value gives an `Unknown`.
    """
    if isinstance(template, str):
        try:
            return _preview_text(template, context)
        except Exception:  # a template may raise anything for a value it was not written for
            return template
    if isinstance(template, Mapping):
        return {key: preview(value, context) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [preview(value, context) for value in template]
    return template


def _preview_text(text: str, context: Mapping[str, object]) -> object:
    whole = _sandbox().whole_expression(text)
    if whole is None:
        return _sandbox().from_string(text).render(context)
    value = _sandbox().compile_expression(whole, undefined_to_none=False)(context)
    return value if isinstance(value, Unknown) else plain(value)


def _of_unknown(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """The filter, extended to `Unknown` values."""
    position = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def filtered(*arguments: object, **named: object) -> object:
        value = arguments[position]
        if not isinstance(value, Unknown):
            return function(*arguments, **named)
        given = _call_text(arguments[position + 1 :], named)
        return Unknown(f"{value.path} | {name}{'' if given == '()' else given}", has_value=value.has_value)

    return filtered


def _default_of_unknown(function: Callable[..., object]) -> Callable[..., object]:
    def filtered(value: object, *arguments: object, **named: object) -> object:
        if isinstance(value, Unknown):
            return value if value.has_value else function(Undefined(), *arguments, **named)
        return function(value, *arguments, **named)

    return filtered


def _is_defined(value: object) -> bool:
    return value.has_value if isinstance(value, Unknown) else not isinstance(value, Undefined)


def _call_text(arguments: tuple[object, ...], named: Mapping[str, object]) -> str:
    texts = [*map(_text, arguments), *(f"{name}={_text(value)}" for name, value in named.items())]
    return f"({', '.join(texts)})"


def _text(value: object) -> str:
    return value.path if isinstance(value, Unknown) else repr(value)


@lru_cache(maxsize=1)
def _sandbox() -> PreviewSandbox:
    return PreviewSandbox()
