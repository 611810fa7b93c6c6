"""Values that are not known yet, for evaluating templates before a run has all the results that they read.

Whatever a template does with an unknown value gives another one. Where it decides by one, each outcome is tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, TypeVar

from codex_multi_role.errors import DefinitionError

T = TypeVar("T")
MAX_TRIES = 64
"""How many sequences of decisions are tried for one template."""


class Decisions:
    """Decides by unknown values, for one name always the same way: first as ``given``, then as ``further`` says."""

    def __init__(self, given: tuple[bool, ...], further: Callable[[], bool]) -> None:
        self._given, self._further = given, further
        self.made: dict[str, bool] = {}
        self.has_iterated = False

    def decide(self, name: str) -> bool:
        number = len(self.made)
        if name not in self.made:
            self.made[name] = self._given[number] if number < len(self._given) else self._further()
        return self.made[name]


_decisions: ContextVar[Decisions | None] = ContextVar("decisions", default=None)


class UnknownValue:
    """A value of which nothing is known but some ``fields``. ``name``: what it is, so that decisions by it agree."""

    __slots__ = ("_fields", "_name")
    __hash__ = object.__hash__

    def __init__(self, name: str, fields: Mapping[str, Any] | None = None) -> None:
        self._name, self._fields = name, fields or {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a known field, or an unknown value
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - as above
        known = self._fields.get(key) if isinstance(key, str) else None
        return UnknownValue(f"{self._name}.{_named(key)}") if known is None else known

    def __call__(self, *_: object, **__: object) -> UnknownValue:
        return UnknownValue(f"{self._name}()")

    def __bool__(self) -> bool:
        decisions = _decisions.get()
        return True if decisions is None else decisions.decide(self._name)

    def __iter__(self) -> Iterator[UnknownValue]:
        decisions = _decisions.get()
        if decisions is not None:
            decisions.has_iterated = True
        if self:
            yield UnknownValue(f"{self._name}[]")

    def __contains__(self, other: object) -> bool:
        return bool(UnknownValue(f"{_named(other)} in {self._name}"))

    def __str__(self) -> str:
        return "…"

    def __format__(self, _: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"UnknownValue({self._name})"

    def __deepcopy__(self, _: object) -> UnknownValue:
        return self

    def _within(self, container: object) -> bool:
        """Whether it is in a list, a mapping or a text."""
        return bool(UnknownValue(f"{self!r} in {_named(container)}"))

    def _absorbed(self, name: str) -> UnknownValue:
        """What an operation makes of it and of other values."""
        return UnknownValue(name)

    def _filtered(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401
        """What the filter ``name`` makes of it. ``arguments``: those of its function, the value among them."""
        others = [each for each in arguments if each is not self]
        return UnknownValue(f"{self!r} | {name} {others!r}{named!r}")

    def _tested(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401
        return self._filtered(f"is {name}", function, arguments, named)


def _combined(sign: str) -> Callable[..., UnknownValue]:
    def combine(self: UnknownValue, *others: object) -> UnknownValue:
        return UnknownValue(" ".join([repr(self), sign, *map(_named, others)]))

    return combine


def _named(value: object) -> str:
    """Raises for an undefined value, which can be combined with nothing."""
    return repr(value) if isinstance(value, UnknownValue) else f"{value!s:.200}"


OPERATIONS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "round"),
    *(f"{side}{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow") for side in ("", "r")),
)
for _name in OPERATIONS:
    setattr(UnknownValue, f"__{_name}__", _combined(_name))


def with_fields(value: object, fields: Mapping[str, Any]) -> UnknownValue:
    """An unknown value with other known ``fields`` beside those of ``value``, which is one or a mapping."""
    if isinstance(value, UnknownValue):
        return UnknownValue(value._name, {**value._fields, **fields})
    return UnknownValue("…", {**value, **fields} if isinstance(value, Mapping) else fields)


def is_known(value: object) -> bool:
    """Whether nothing in ``value`` is unknown."""
    return not [*_unknown_in(value)]


def absorbed(name: str, values: Sequence[object]) -> UnknownValue | None:
    """What an operation makes of the values if one of them is unknown; None if none is."""
    made = [each._absorbed(name) for value in values for each in _unknown_in(value)]
    return made[0] if made else None


def _unknown_in(value: object) -> Iterator[UnknownValue]:
    if isinstance(value, UnknownValue):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _unknown_in(each)


class Tries(NamedTuple, Generic[T]):
    """What evaluating something gave. ``only``: the value, if all tries gave the same; ``failure``: if all failed."""

    only: T | None
    failure: DefinitionError | None = None


def tries(evaluate: Callable[[], T]) -> Tries[T]:
    """Evaluate with different decisions: all sequences if they are few, otherwise a fixed sample of them.

    A failure that only says that something was an unknown value is none.
    """
    values: list[T] = []
    failures: list[DefinitionError] = []
    is_certain = True
    for decisions in sequences():
        token = _decisions.set(decisions)
        try:
            values.append(evaluate())
        except DefinitionError as failure:
            is_certain = is_certain and not _is_about_unknown(f"{failure} {failure.__cause__}", decisions)
            failures.append(failure)
        finally:
            _decisions.reset(token)
    if values and not failures:
        is_one = len(values) == 1 or all(is_known(each) and each == values[0] for each in values)
        return Tries(values[0] if is_one else None)
    return Tries(None, failures[0] if is_certain and not values else None)


def _is_about_unknown(failure: str, decisions: Decisions) -> bool:
    """Whether a failure only says that something was an unknown value, which has no number of parts either."""
    return UnknownValue.__name__ in failure or (decisions.has_iterated and "values to unpack" in failure)


def sequences() -> Iterator[Decisions]:
    """Depth first from "always yes" on; a sample, the same each time, if that does not come to an end."""
    given: tuple[bool, ...] = ()
    for _ in range(MAX_TRIES):
        decisions = Decisions(given, lambda: True)
        yield decisions
        made = [*decisions.made.values()]
        while made and not made[-1]:
            made.pop()
        if not made:
            return
        given = (*made[:-1], False)
    yield Decisions((), lambda: False)
    chance = random.Random(MAX_TRIES)
    for _ in range(MAX_TRIES):
        yield Decisions((), lambda: chance.random() < 0.5)
