"""Values that are not known yet: whatever a template does with one gives another one, and is noted.

Where a template decides by one (whether it is given, whether it is true, whether a list has elements), each outcome is
tried. A given list has two elements, so that the first and the last one differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import reduce
from operator import or_
from typing import Any, Generic, NamedTuple, TypeVar

from jinja2 import StrictUndefined, Undefined, UndefinedError

from codex_multi_role.catalog.explorations import (
    MAPPING_METHODS,
    TEXT_METHODS,
    Exploration,
    NotedPath,
    Operation,
    Rule,
    UnknownField,
    ValueNote,
    ValueUse,
    explore,
    is_exploring,
    now,
    operand_use,
)
from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.value_types import ANY, BOOLEAN, LIST, NUMBER, TEXT, ValueType

T = TypeVar("T")
MAX_TRIES = 64
"""Of how many sequences of decisions all are tried, to judge an answer."""
MAX_NAME = 400
OF_ELEMENT = "#"
"""In the name of an unknown element of an unknown list."""
MAX_NESTED = 3
"""How deep unknown lists contain others: a recursive loop would not end."""
NOT_AS_A_LIST = frozenset({"count", "first", "last", "length", "list", "max", "min", "reverse", "sort", "unique"})
"""Filters for lists that accept texts as well."""
SAME_ELEMENTS = frozenset({"list", "reverse", "sort"})


class Element:
    """An element of a list, in a path. ``is_only``: nothing asked for the other ones."""

    def __init__(self, number: int) -> None:
        self.number, self.is_only = number, True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and other.number == self.number

    def __hash__(self) -> int:
        return hash((Element, self.number))

    def __repr__(self) -> str:
        return f"{OF_ELEMENT}{self.number}"


class Placeholder:
    """Stands for a value that only a run can know, and says itself what filters, tests and calls make of it."""

    __slots__ = ()
    __call__: Callable[..., Any]
    _part: Callable[[str], Any]


class UnknownValue(Placeholder):
    """``path``: empty for what templates make of values. ``type``: what is known of it. ``elements``: of a list.

    ``rule``: of its value; of what has a path, whether it is given.
    """

    __slots__ = ("_elements", "_fields", "_is_slice", "_name", "_owner", "_parts", "_path", "_rule", "_type")

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        *,
        path: NotedPath = (),
        type: ValueType = ANY,
        elements: Sequence[object] | None = None,
        rule: Rule | None = None,
    ) -> None:
        self._name, self._fields, self._path, self._type = name, fields or {}, path, type
        self._elements, self._rule = elements, rule
        self._owner: tuple[UnknownValue, str] | None = None
        self._parts: tuple[object, ...] = ()
        self._is_slice = False

    def _use(self, as_: ValueUse, compared: tuple[object, ...] = ()) -> None:
        exploration = now()
        if exploration.made.get(f"given {self._name}") is False:
            raise UndefinedError(f"{self._name} is missing")
        self._note(as_, compared, exploration)

    def _note(self, as_: ValueUse, compared: tuple[object, ...], exploration: Exploration) -> None:
        if len(self._path) > 1 and not exploration.is_silent:
            exploration.notes[ValueNote(self._path, as_, compared)] = None

    def _is_given(self) -> bool:
        if self._owner is None and self._rule is None:
            return True
        now().asked[f"given {self._name}"] = self._path
        return now().decide(f"given {self._name}", self._rule)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as below
        if name.startswith("_"):
            raise AttributeError(name)
        return self._part(name)

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - as below
        return self._part(key, may_be_made=now().is_vague)

    def _part(self, key: object, *, may_be_made: bool = False) -> Any:  # noqa: ANN401 - a known field may be anything
        if isinstance(key, str) and key in self._fields:
            return self._fields[key]
        name = f"{self._name}.{key}"[-MAX_NAME:]
        if isinstance(key, slice):
            self._use(ValueUse.FILLED)
            part = _made(name)
            part._parts, part._is_slice = (self,), True
            return part
        is_plain = isinstance(key, str | int) and not isinstance(key, bool)
        self._use(ValueUse.PASSED if is_plain else ValueUse.ANY)
        if self._elements is not None and isinstance(key, int):
            return list(self)[key]
        path = (*self._path, key) if self._path and is_plain else ()
        found = UnknownValue(name, path=path, type=self._type.fields.get(str(key), ANY))
        found._owner = (self, str(key))
        if isinstance(key, str) and not (self._type.is_open or key in self._type.fields or may_be_made):
            now().unknown_fields[name] = UnknownField(self._name, key, self._type)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - what a method returns
        owner, method = self._owner or (self, "")
        now().unknown_fields.pop(self._name, None)
        if method in MAPPING_METHODS:
            owner._use(ValueUse.MAPPING)
            return owner._of_mapping(method, *arguments)
        owner._use(ValueUse.TEXT if method in TEXT_METHODS else ValueUse.ANY)
        try:
            made = getattr("", method)(*arguments, **named)
        except Exception:
            made = None
        name = f"{self._name}({arguments!r})"
        return _made(name, _kind_of(made), [_made(f"{name}[]", TEXT)] * 2 if made == [""] else None)

    def _of_mapping(self, method: str, *arguments: Any) -> object:  # noqa: ANN401 - a default may be anything
        if method == "get":
            found = self[arguments[0]]
            now().unknown_fields.pop(f"{self._name}.{arguments[0]}", None)
            return found if not isinstance(found, UnknownValue) or found._is_given() else [*arguments[1:], None][0]
        if self._fields:
            return getattr(self._fields, method)()
        pair = _made(f"{self._name}.key", TEXT), _made(f"{self._name}.value")
        shown = {"items": pair, "keys": pair[0], "values": pair[1]}[method]
        return _made(f"{self._name}.{method}()", LIST, [shown] if now().decide(self._name) else [])

    def _absorbed(self, name: str) -> UnknownValue:
        """What an operation makes of it and of other values."""
        self._use(ValueUse.FILLED)
        return _made(f"{name} {self._name}")

    def __bool__(self) -> bool:
        decides = now().decides and now().filtered is not self
        self._use(ValueUse.DECIDED if decides else ValueUse.PASSED)
        if self._elements is not None and self._rule is None:
            return bool(self._elements)
        return now().decide(self._name, self._rule if self._elements is not None or not self._path else None)

    def __iter__(self) -> Iterator[Any]:
        yield from self._walk(reverse=False)

    def __reversed__(self) -> Iterator[Any]:
        yield from self._walk(reverse=True)

    def _walk(self, *, reverse: bool) -> Iterator[Any]:
        self._use(now().walks)
        now().is_vague = True
        if self._parts:
            for part in self._parts:
                yield from [*part][:1] if self._is_slice else part  # type: ignore[misc]
        elif self._elements is not None:
            if self._rule is None or now().decide(self._name, self._rule):
                yield from reversed(self._elements) if reverse else self._elements
        elif self._name.count(OF_ELEMENT) < MAX_NESTED and now().decide(self._name):
            elements = [Element(1), Element(0)] if reverse else [Element(0), Element(1)]
            yield self._element(elements[0])
            elements[0].is_only = elements[1].is_only = False
            now().walked |= {(*self._path, each) for each in elements if self._path}
            yield self._element(elements[1])

    def _element(self, element: Element) -> UnknownValue:
        return UnknownValue(f"{self._name}{element!r}", path=(*self._path, element) if self._path else ())

    def _stood_for(self, known: T, as_: ValueUse) -> T:
        """A known value for what can use no other one."""
        self._use(as_)
        now().is_vague = True
        return known

    def __len__(self) -> int:
        return self._stood_for(2, ValueUse.COUNTED)

    def __contains__(self, other: object) -> bool:
        self._use(ValueUse.COUNTED)
        return bool(_made(f"{_named(other)} in {self._name}"))

    def _within(self, container: object) -> bool:
        """Whether it is in a list, a mapping or a text."""
        if isinstance(container, list | tuple):
            return any(self == each for each in container)
        self._use(ValueUse.TEXT if isinstance(container, str) else ValueUse.PASSED)
        if isinstance(container, UnknownValue):
            container._use(ValueUse.COUNTED)
        return bool(_made(f"{self!r} in {_named(container)}"[-MAX_NAME:]))

    def __str__(self) -> str:
        return self._stood_for("…", ValueUse.FILLED)

    def __format__(self, _: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"UnknownValue({self._name})"

    def __deepcopy__(self, _: object) -> UnknownValue:
        return self

    def __hash__(self) -> int:
        self._use(ValueUse.PASSED)
        return id(self)

    def _number(self) -> int:
        return self._stood_for(2, ValueUse.NUMBER)

    __index__ = _number

    def __int__(self) -> int:
        return self._stood_for(2, ValueUse.PASSED)

    def __float__(self) -> float:
        return float(int(self))

    def _filtered(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401
        """What the filter ``function`` makes of the value, which is among its ``arguments``."""
        if name in ("default", "d"):
            given = [Undefined() if each is self and not self._is_given() else each for each in arguments]
            return function(*given, **named)
        if name in ("attr", "urlencode"):  # of the value itself, not of its parts
            return self._absorbed(name)
        if name == "items":
            return self.items() if self._is_given() else []
        current = now()
        before, current.filtered = (current.walks, current.filtered), self
        current.walks = ValueUse.COUNTED if name in NOT_AS_A_LIST else current.walks
        try:
            made = function(*arguments, **named)
        except UndefinedError:
            raise
        except Exception:  # it wants a real value
            self._use(ValueUse.PASSED)
            return _made(f"{self._name} | {name}", TEXT if name == "tojson" else ANY)
        finally:
            current.walks, current.filtered = before
        if isinstance(made, UnknownValue | Undefined | Mapping):
            return made
        if name in SAME_ELEMENTS:
            same = copy(self)
            same._type = LIST if name != "reverse" else self._type
            return same
        shown = ", ".join(repr(each) for each in arguments if isinstance(each, str | int | float))
        is_list = isinstance(made, list | tuple | Iterator)
        return _made(f"{self._name} | {name}({shown}{named or ''})", _kind_of(made), [*made] if is_list else None)

    def _tested(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> object:
        """The result of a test of the value, which is among its ``arguments``."""
        if name in ("defined", "undefined"):
            return self._is_given() == (name == "defined")
        try:
            known = [[""] if isinstance(each, UnknownValue) else each for each in arguments]
            function(*(StrictUndefined() if one is self else each for one, each in zip(arguments, known, strict=True)))
        except UndefinedError:
            made = function(*arguments)
        except Exception:
            made = None
        else:  # it is for values that may be anything
            self._note(ValueUse.ANY, (), now())
            made = self._is_given() and None
        return made if isinstance(made, UnknownValue) or made is False else _made(f"{self._name} is {name}", BOOLEAN)


def _noted_operation(sign: str) -> Callable[..., object]:
    is_reflected = hasattr(operator, sign[1:]) and not hasattr(operator, sign)
    plain = sign[1:] if is_reflected else sign
    compute: Callable[..., Any] = getattr(operator, plain, round)

    def operation(self: UnknownValue, *others: object) -> object:
        other = others[0] if others and plain != "round" else 0
        unknown = other if isinstance(other, UnknownValue) else None
        is_comparison = plain in ("eq", "ne", "lt", "le", "gt", "ge")
        if unknown is not None and self._path and _shape(unknown._path) == _shape(self._path):
            self._use(ValueUse.PASSED)
            unknown._use(ValueUse.PASSED)
            return True  # elements are sorted or grouped
        self._use(
            operand_use(plain, type_of(other).kind, is_constant=unknown is None, is_right=is_reflected),
            (other,) if is_comparison and unknown is None else (),
        )
        if unknown is not None:
            unknown._use(operand_use(plain, self._type.kind, is_constant=False, is_right=not is_reflected))
        operands = (other, self) if is_reflected else (self, other)
        kind = BOOLEAN if is_comparison else _type_made(plain, self._type, type_of(other))
        made = UnknownValue(f"({_named(operands[0])} {plain} {_named(operands[1])})"[-MAX_NAME:], type=kind)
        if plain == "add" and kind.kind not in ("number", "string"):
            made._parts = operands
        if self._rule is not None and not self._path and unknown is None:
            of, value = self._rule
            made._rule = Rule(of, lambda fields: compute(value(fields), *others))
        return made

    return operation


_OPERATIONS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "round"),
    *(f"{side}{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow") for side in ("", "r")),
)
for _sign in _OPERATIONS:
    setattr(UnknownValue, f"__{_sign}__", _noted_operation(_sign))


def _named(value: object) -> str:
    """Raises for an undefined value, which can be combined with nothing."""
    return repr(value) if isinstance(value, UnknownValue) else f"{value!s:.200}"


def _made(name: str, type: ValueType = ANY, elements: Sequence[object] | None = None) -> UnknownValue:
    return UnknownValue(name, type=type, elements=elements)


def _type_made(sign: str, one: ValueType, other: ValueType) -> ValueType:
    """What an operation makes of values of both types. Numbers, texts and lists can be added, and multiplied by one.

    A sum that always fails is reported where it stands: what it would make is judged as if it kept its first type.
    """
    if sign == "add" and not one.can_be_less(other):
        return one.kinds_only()
    if sign in ("add", "mul"):
        if sign == "add":
            made = other if one.kinds == ANY.kinds else one | other
        else:
            made = other if one.kinds == NUMBER.kinds else one if other.kinds == NUMBER.kinds else ANY
        return ANY if "boolean" in made.kinds else made.kinds_only()  # true counts as 1
    return ANY if sign == "mod" and "string" in one.kinds != ANY.kinds else NUMBER


def type_of(value: object) -> ValueType:
    """What is known of a value in the evaluation of now. One that stands for an unknown one has its kinds alone."""
    if isinstance(value, UnknownValue):
        return value._type
    if isinstance(value, Undefined):
        return ANY
    return _kind_of(value) if now().is_vague else ValueType.of_constant(value)


def _kind_of(value: object) -> ValueType:
    return ValueType.of_constant(value).kinds_only()


def note_operation(number: int, shown: tuple[str, str, str, bool], left: object, right: object) -> None:
    """Note what is known of both sides of a comparison or a sum."""
    if is_exploring():
        listed = right if isinstance(right, list | tuple) else ()
        contained = reduce(or_, map(type_of, listed)) if listed else ANY
        other = contained if shown[0] in ("in", "notin") else type_of(right)
        now().note_operation(number, Operation(*shown, type_of(left), other))


def _shape(path: NotedPath) -> Sequence[object]:
    return [Element if isinstance(part, Element) else part for part in path]


def with_fields(value: object, fields: Mapping[str, Any]) -> UnknownValue:
    """An unknown value with other known ``fields`` beside those of ``value``, which is one or a mapping."""
    if isinstance(value, UnknownValue):
        known = {**value._fields, **fields}
        return UnknownValue(value._name, known, path=value._path, type=value._type, rule=value._rule)
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
    """Evaluate with different decisions. A failure that only says that something was an unknown value is none."""
    found = explore(evaluate, most=MAX_TRIES)
    values = [each.value for each in found if each.failure is None]
    failures = [each.failure for each in found if isinstance(each.failure, DefinitionError)]
    if len(values) == len(found):
        is_one = len(values) == 1 or all(is_known(each) and each == values[0] for each in values)
        return Tries(values[0] if is_one else None)
    is_certain = len(failures) == len(found) and not any(map(_is_about_unknown, found))
    return Tries(None, failures[0] if is_certain else None)


def _is_about_unknown(exploration: Exploration) -> bool:
    """Whether its failure only says that something was an unknown value, which has no number of parts either."""
    failure = f"{exploration.failure} {exploration.failure and exploration.failure.__cause__}"
    return UnknownValue.__name__ in failure or (exploration.is_vague and "values to unpack" in failure)


def use(value: object, as_: ValueUse) -> object:
    """Note the use of a value, and that what it contains is passed on."""
    if isinstance(value, UnknownValue):
        value._use(as_)
        for each in value._elements or ():
            use(each, ValueUse.PASSED)
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            use(each, ValueUse.PASSED)
    return value


def path_of(value: object) -> NotedPath:
    """Where a value is; empty if it is not a part of a result."""
    return value._path if isinstance(value, UnknownValue) else ()


def elements_of(value: UnknownValue) -> Sequence[object]:
    """The elements of a list that a template made."""
    return value._elements or ()
