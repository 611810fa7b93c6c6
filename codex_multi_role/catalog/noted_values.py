"""Unknown values that note what a template does with them: the template engine itself is the reader.

A template is evaluated once per sequence of decisions: whether a value is given, whether it is true, whether a list has
elements. A given list has two, so that the first and the last one differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, Undefined, UndefinedError

from codex_multi_role.catalog.unknown_values import OPERATIONS, Decisions, UnknownValue, sequences
from codex_multi_role.catalog.value_uses import MAPPING_METHODS, TEXT_METHODS, ValueUse, kind_of, operand_use

NOT_AS_A_LIST = frozenset({"count", "first", "last", "length", "list", "max", "min", "reverse", "sort", "unique"})
"""Filters for lists that accept texts as well."""
MAX_EXPLORATIONS = 16
MAX_NAME = 400
SAME_ELEMENTS = frozenset({"list", "reverse", "sort"})


class Step(NamedTuple):
    """A step of a flow, whose results are read."""

    flow: str
    id: str


class Rule(NamedTuple):
    """The ``value`` of what the engine says of a step, by the fields that it has beside its result."""

    of: Step
    value: Callable[[Mapping[str, Any]], object]


class Element:
    """An element of a list, in a path. ``is_only``: nothing asked for the other ones."""

    def __init__(self, number: int) -> None:
        self.number, self.is_only = number, True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and other.number == self.number

    def __hash__(self) -> int:
        return hash((Element, self.number))

    def __repr__(self) -> str:
        return f"#{self.number}"


NotedPath = tuple[Any, ...]
"""Whose result, then names, numbers and elements."""


class Note(NamedTuple):
    path: NotedPath
    use: ValueUse
    compared: tuple[object, ...] = ()


@dataclass
class Exploration:
    """One evaluation: its decisions, those that a rule decides, what it read, and the elements that it walked through.

    ``asked``: the values of which it decided whether they are given, by the name of the decision.
    ``decides``: what the template decides by matters for the flow, not only for a text. ``failed``: it has no value.
    """

    decisions: Decisions
    decides: bool
    rules: dict[str, Rule] = field(default_factory=dict)
    notes: dict[Note, None] = field(default_factory=dict)
    walked: set[NotedPath] = field(default_factory=set)
    asked: dict[str, NotedPath] = field(default_factory=dict)
    is_silent: bool = False
    walks: ValueUse = ValueUse.WALKED
    filtered: object = None
    failed: bool = False
    value: object = None


_current: ContextVar[Exploration | None] = ContextVar("exploration", default=None)


def explore(evaluate: Callable[[], object], *, decides: bool) -> list[Exploration]:
    """What ``evaluate`` reads with different decisions: with all sequences if they are few, otherwise with some.

    Those are the first ones, and those in which all decisions but one are the same.
    """
    found = [_explored(evaluate, each, decides) for each in islice(sequences(), MAX_EXPLORATIONS)]
    if len(found) == MAX_EXPLORATIONS:
        names = dict.fromkeys(name for each in found for name in each.decisions.made)
        for most in (True, False):
            found += [_explored(evaluate, _AllButOne(name, most), decides) for name in ("", *names)]
    _note_indispensable(found)
    return found


class _AllButOne(Decisions):
    def __init__(self, name: str, most: bool) -> None:
        super().__init__((), lambda: most)
        self.made[name] = not most


def _explored(evaluate: Callable[[], object], decisions: Decisions, decides: bool) -> Exploration:
    exploration = Exploration(decisions, decides)
    token = _current.set(exploration)
    try:
        exploration.value = evaluate()
    except Exception:  # a template may raise anything for a value it was not written for
        exploration.failed = True
    finally:
        _current.reset(token)
    return exploration


def _note_indispensable(explorations: Sequence[Exploration]) -> None:
    """Note the values without which every evaluation fails, such as after a test for null alone."""
    for name, path in {each: path for one in explorations for each, path in one.asked.items()}.items():
        without = [each for each in explorations if each.decisions.made.get(name) is False]
        if len(path) > 1 and without and all(each.failed for each in without):
            for each in explorations:
                if each.decisions.made.get(name):
                    each.notes[Note(path, ValueUse.PASSED)] = None


@contextmanager
def unnoted() -> Iterator[None]:
    """What is read meanwhile is noted elsewhere."""
    exploration = _now()
    before, exploration.is_silent = exploration.is_silent, True
    try:
        yield
    finally:
        exploration.is_silent = before


def use(value: object, as_: ValueUse) -> object:
    """Note the use of a value, and that what it contains is passed on."""
    if isinstance(value, NotedValue):
        value._use(as_)
        for each in value._elements or ():
            use(each, ValueUse.PASSED)
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            use(each, ValueUse.PASSED)
    return value


def path_of(value: object) -> NotedPath:
    """Where a value is; empty if it is not a part of a result."""
    return value._path if isinstance(value, NotedValue) else ()


def elements_of(value: NotedValue) -> Sequence[object]:
    """The elements of a list that a template made."""
    return value._elements or ()


def _now() -> Exploration:
    return _current.get() or Exploration(Decisions((), lambda: True), decides=False)


class NotedValue(UnknownValue):
    """``path``: empty for what templates make of values. ``kind``: its JSON type. ``elements``: of a list, if known.

    ``rule``: of its value; of what has a path, whether it is given.
    """

    __slots__ = ("_elements", "_is_slice", "_kind", "_owner", "_parts", "_path", "_rule")

    def __init__(
        self,
        name: str,
        path: NotedPath = (),
        fields: Mapping[str, Any] | None = None,
        *,
        kind: str = "",
        elements: Sequence[object] | None = None,
        rule: Rule | None = None,
    ) -> None:
        super().__init__(name, fields)
        self._path, self._kind, self._elements, self._rule = path, kind, elements, rule
        self._owner: tuple[NotedValue, str] | None = None
        self._parts: tuple[object, ...] = ()
        self._is_slice = False

    def _use(self, as_: ValueUse, compared: tuple[object, ...] = ()) -> None:
        now = _now()
        if now.decisions.made.get(f"given {self._name}") is False:
            raise UndefinedError(f"{self._name} is missing")
        self._note(as_, compared)

    def _note(self, as_: ValueUse, compared: tuple[object, ...] = ()) -> None:
        if len(self._path) > 1 and not _now().is_silent:
            _now().notes[Note(self._path, as_, compared)] = None

    def _decide(self, name: str, rule: Rule | None = None) -> bool:
        now = _now()
        if rule is not None:
            now.rules[name] = rule
        return now.decisions.decide(name)

    def _is_given(self) -> bool:
        if len(self._path) < 2 and self._rule is None:
            return True
        _now().asked[f"given {self._name}"] = self._path
        return self._decide(f"given {self._name}", self._rule)

    def _made(self, name: str, kind: str = "", elements: Sequence[object] | None = None) -> NotedValue:
        return NotedValue(name, kind=kind, elements=elements)

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401 - a known field may be anything
        if isinstance(key, str) and key in self._fields:
            return self._fields[key]
        name = f"{self._name}.{key}"[-MAX_NAME:]
        if isinstance(key, slice):
            self._use(ValueUse.FILLED)
            part = self._made(name)
            part._parts, part._is_slice = (self,), True
            return part
        is_plain = isinstance(key, str | int) and not isinstance(key, bool)
        self._use(ValueUse.PASSED if is_plain else ValueUse.ANY)
        if self._elements is not None and isinstance(key, int):
            return list(self)[key]
        found = NotedValue(name, (*self._path, key) if self._path and is_plain else ())
        found._owner = (self, str(key))
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - what a method returns
        owner, method = self._owner or (self, "")
        if method in MAPPING_METHODS:
            owner._use(ValueUse.MAPPING)
            return owner._of_mapping(method, *arguments)
        owner._use(ValueUse.TEXT if method in TEXT_METHODS else ValueUse.ANY)
        try:
            made = getattr("", method)(*arguments, **named)
        except Exception:
            made = None
        name = f"{self._name}({arguments!r})"
        return self._made(name, kind_of(made), [self._made(f"{name}[]", "string")] * 2 if made == [""] else None)

    def _of_mapping(self, method: str, *arguments: Any) -> object:  # noqa: ANN401 - a default may be anything
        if method == "get":
            found = self[arguments[0]]
            return found if not isinstance(found, NotedValue) or found._is_given() else [*arguments[1:], None][0]
        if self._fields:
            return getattr(self._fields, method)()
        pair = self._made(f"{self._name}.key", "string"), self._made(f"{self._name}.value")
        shown = {"items": pair, "keys": pair[0], "values": pair[1]}[method]
        return self._made(f"{self._name}.{method}()", "array", [shown] if self._decide(self._name) else [])

    def _absorbed(self, name: str) -> NotedValue:
        self._use(ValueUse.FILLED)
        return self._made(f"{name} {self._name}")

    def __bool__(self) -> bool:
        now = _now()
        self._use(ValueUse.DECIDED if now.decides and now.filtered is not self else ValueUse.PASSED)
        if self._elements is not None and self._rule is None:
            return bool(self._elements)
        return self._decide(self._name, self._rule if self._elements is not None or not self._path else None)

    def __iter__(self) -> Iterator[Any]:
        yield from self._walk(reverse=False)

    def __reversed__(self) -> Iterator[Any]:
        yield from self._walk(reverse=True)

    def _walk(self, *, reverse: bool) -> Iterator[Any]:
        self._use(_now().walks)
        if self._parts:
            for part in self._parts:
                yield from [*part][:1] if self._is_slice else part  # type: ignore[misc]
        elif self._elements is not None:
            if self._rule is None or self._decide(self._name, self._rule):
                yield from reversed(self._elements) if reverse else self._elements
        elif self._decide(self._name):
            elements = [Element(1), Element(0)] if reverse else [Element(0), Element(1)]
            yield self._element(elements[0])
            elements[0].is_only = elements[1].is_only = False
            _now().walked |= {(*self._path, each) for each in elements if self._path}
            yield self._element(elements[1])

    def _element(self, element: Element) -> NotedValue:
        return NotedValue(f"{self._name}{element!r}", (*self._path, element) if self._path else ())

    def __len__(self) -> int:
        self._use(ValueUse.COUNTED)
        return 2

    def __contains__(self, other: object) -> bool:
        self._use(ValueUse.COUNTED)
        return bool(self._made(f"{other!r} in {self._name}"))

    def _within(self, container: object) -> bool:
        if isinstance(container, list | tuple):
            return any(self == each for each in container)
        self._use(ValueUse.TEXT if isinstance(container, str) else ValueUse.PASSED)
        if isinstance(container, NotedValue):
            container._use(ValueUse.COUNTED)
        return bool(self._made(f"{self!r} in {container!r}"[-MAX_NAME:]))

    def __str__(self) -> str:
        self._use(ValueUse.FILLED)
        return ""

    def __format__(self, _: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"UnknownValue({self._name})"

    def __hash__(self) -> int:
        self._use(ValueUse.PASSED)
        return id(self)

    def _number(self) -> int:
        self._use(ValueUse.NUMBER)
        return 2

    __index__ = _number

    def __int__(self) -> int:
        self._use(ValueUse.PASSED)
        return 2

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
        now = _now()
        before, now.filtered = (now.walks, now.filtered), self
        now.walks = ValueUse.COUNTED if name in NOT_AS_A_LIST else ValueUse.PASSED if name == "urlencode" else now.walks
        try:
            made = function(*arguments, **named)
        except UndefinedError:
            raise
        except Exception:  # it wants a real value
            self._use(ValueUse.PASSED)
            return self._made(f"{self._name} | {name}")
        finally:
            now.walks, now.filtered = before
        if isinstance(made, NotedValue | Undefined | Mapping):
            return made
        if name in SAME_ELEMENTS:
            return self
        shown = ", ".join(repr(each) for each in arguments if isinstance(each, str | int | float))
        is_list = isinstance(made, list | tuple | Iterator)
        return self._made(f"{self._name} | {name}({shown}{named or ''})", kind_of(made), [*made] if is_list else None)

    def _tested(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> object:
        """The result of a test of the value, which is among its ``arguments``."""
        if name in ("defined", "undefined"):
            return self._is_given() == (name == "defined")
        try:
            known = [[""] if isinstance(each, NotedValue) else each for each in arguments]
            function(*(StrictUndefined() if one is self else each for one, each in zip(arguments, known, strict=True)))
        except UndefinedError:
            made = function(*arguments)
        except Exception:
            made = None
        else:  # it is for values that may be anything
            self._note(ValueUse.ANY)
            made = self._is_given() and None
        return (
            made if isinstance(made, NotedValue) or made is False else self._made(f"{self._name} is {name}", "boolean")
        )


def _noted_operation(sign: str) -> Callable[..., object]:
    is_reflected = hasattr(operator, sign[1:]) and not hasattr(operator, sign)
    plain = sign[1:] if is_reflected else sign
    compute: Callable[..., Any] = getattr(operator, plain, round)

    def operation(self: NotedValue, *others: object) -> object:
        other = others[0] if others and plain != "round" else 0
        unknown = other if isinstance(other, NotedValue) else None
        is_comparison = plain in ("eq", "ne", "lt", "le", "gt", "ge")
        if unknown is not None and self._path and _shape(unknown._path) == _shape(self._path):
            self._use(ValueUse.PASSED)
            unknown._use(ValueUse.PASSED)
            return True  # elements are sorted or grouped
        self._use(
            operand_use(plain, _kind(other), is_constant=unknown is None, is_right=is_reflected),
            (other,) if is_comparison and unknown is None else (),
        )
        if unknown is not None:
            unknown._use(operand_use(plain, self._kind, is_constant=False, is_right=not is_reflected))
        operands = (other, self) if is_reflected else (self, other)
        kind = "boolean" if is_comparison else _kind(other) if plain in ("add", "mul") else "number"
        made = NotedValue(f"({operands[0]!r} {plain} {operands[1]!r})"[-MAX_NAME:], kind=kind)
        if plain == "add" and kind not in ("number", "string"):
            made._parts = operands
        if self._rule is not None and not self._path and unknown is None:
            of, value = self._rule
            made._rule = Rule(of, lambda fields: compute(value(fields), *others))
        return made

    return operation


for _sign in OPERATIONS:
    setattr(NotedValue, f"__{_sign}__", _noted_operation(_sign))


def _kind(value: object) -> str:
    return value._kind if isinstance(value, NotedValue) else kind_of(value)


def _shape(path: NotedPath) -> Sequence[object]:
    return [Element if isinstance(part, Element) else part for part in path]
