"""Templates before their run: a value that only the run can know appears as its own path, ``<plan.todos>``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from jinja2 import Undefined

from codex_multi_role.catalog.templates import value_of_text
from codex_multi_role.catalog.unknown_values import Placeholder
from codex_multi_role.host.spelling import with_texts

NOTHING: Mapping[str, object] = MappingProxyType({})


class Unknown(str, Placeholder):
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

    _part = __getitem__

    def __call__(self, *arguments: object, **named: object) -> Unknown:
        return Unknown(f"{self.path}{_call_text(arguments, named)}", has_value=self.has_value)

    def __iter__(self) -> Iterator[str]:
        return iter([self[...]] if self.has_value else [])

    def __bool__(self) -> bool:
        return self.has_value

    def _never(self, other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _never

    def _filtered(
        self, name: str, function: Callable[..., object], arguments: Sequence[object], named: Mapping[str, object]
    ) -> object:
        """What a filter makes of the value, which is among its ``arguments``."""
        if name in ("default", "d"):
            return self if self.has_value else function(Undefined(), *arguments[1:], **named)
        others = arguments[1 + [each is self for each in arguments].index(True) :]
        given = _call_text(others, named) if others or named else ""
        return Unknown(f"{self.path} | {name}{given}", has_value=self.has_value)

    def _tested(
        self, name: str, function: Callable[..., object], arguments: Sequence[object], named: Mapping[str, object]
    ) -> object:
        """The result of a test, likewise."""
        return self.has_value == (name == "defined") if name.endswith("defined") else function(*arguments, **named)


def _operation(sign: str, *, is_reflected: bool) -> Callable[[Unknown, object], Unknown]:
    def operation(self: Unknown, other: object) -> Unknown:
        left, right = (other, self) if is_reflected else (self, other)
        return Unknown(f"{_text(left)} {sign} {_text(right)}")

    return operation


for _name, _sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"}.items():
    for _side in ("", "r"):
        setattr(Unknown, f"__{_side}{_name}__", _operation(_sign, is_reflected=bool(_side)))


def preview(template: object, context: Mapping[str, object]) -> Any:  # noqa: ANN401 - the author's choice
    """``template`` as rendered by `render`, as far as ``context``, which may have `Unknown` values, allows.

    Never raises: a text that fails with the stand-in for a value stays as written. One whole ``{{ … }}`` of an unknown
    value gives an `Unknown`.
    """

    def shown(text: str) -> object:
        try:
            return value_of_text(text, context)
        except Exception:  # a template may raise anything for a value it was not written for
            return text

    return with_texts(template, shown)


def _call_text(arguments: Sequence[object], named: Mapping[str, object]) -> str:
    texts = [*map(_text, arguments), *(f"{name}={_text(value)}" for name, value in named.items())]
    return f"({', '.join(texts)})"


def _text(value: object) -> str:
    return value.path if isinstance(value, Unknown) else repr(value)
