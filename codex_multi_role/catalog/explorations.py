"""Evaluate what is not known yet with different decisions, and note what is read meanwhile, and what it is used for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from types import EllipsisType
from typing import Any, Final, NamedTuple, TypeVar

from codex_multi_role.reading.value_types import ANY, COUNTABLE, IN_WORDS, ValueType

ITEM: Final = ...
"""The part of a path that stands for every element of a list."""
Path = tuple[str | int | EllipsisType, ...]
TEXT_METHODS = frozenset(dir(str)) - frozenset(dir(dict)) - frozenset(dir(list))
MAPPING_METHODS = frozenset({"get", "items", "keys", "values"})


class ValueUse(Enum):
    """What a template does with a value, and the JSON type that this needs, if any.

    ``ANY``: several types are expected, such as where the type is tested. ``PASSED`` to something else as it is;
    ``FILLED`` into a text; ``COUNTED``: given to a filter for lists that accepts texts as well.
    """

    ANY = ""
    PASSED = "passed"
    FILLED = "filled in"
    COUNTED = "counted"
    DECIDED = "decided"
    NUMBER = "number"
    EQUAL_NUMBER = "equal number"
    TEXT = "string"
    EQUAL_TEXT = "equal string"
    EQUAL_BOOLEAN = "equal boolean"
    MAPPING = "object"
    WALKED = "walked array"
    ITEMS = "array"

    @property
    def type(self) -> str:
        kind = self.value.rpartition(" ")[2]
        return kind if kind in IN_WORDS else ""

    @property
    def required_type(self) -> ValueType:
        """Without a value of this type, the template cannot be evaluated."""
        if self is ValueUse.COUNTED:
            return COUNTABLE
        return ValueType.of(self.value) if self.value in IN_WORDS else ANY


def use_as(wanted: ValueType | None) -> ValueUse:
    """The use of a value that must be of that type, if of any."""
    uses = {"boolean": ValueUse.EQUAL_BOOLEAN, "null": ValueUse.ANY}
    return ValueUse.PASSED if wanted is None else uses.get(wanted.kind) or ValueUse(wanted.kind)


def path_text(path: Path) -> str:
    """``tasks[].title``."""
    parts = ("[]" if part is ITEM else f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def operand_use(sign: str, kind: str, *, is_constant: bool, is_right: bool = False) -> ValueUse:
    """What an operation needs of an operand beside another one of a ``kind``; ``+`` also joins texts and lists."""
    if sign in ("eq", "ne"):
        equal = {"number": ValueUse.EQUAL_NUMBER, "string": ValueUse.EQUAL_TEXT}
        equal |= {"boolean": ValueUse.EQUAL_BOOLEAN} if is_constant else {}
        return equal.get(kind, ValueUse.PASSED)
    if sign in ("lt", "le", "gt", "ge"):
        return {"number": ValueUse.NUMBER, "string": ValueUse.TEXT}.get(kind, ValueUse.PASSED)
    if sign in ("add", "mul"):
        alike = {"string": ValueUse.TEXT, "array": ValueUse.WALKED} if sign == "add" else {}
        return {"number": ValueUse.NUMBER, **alike}.get(kind, ValueUse.PASSED)
    is_format = sign == "mod" and is_right and kind != "number"
    return ValueUse.FILLED if is_format else ValueUse.NUMBER


T = TypeVar("T")
NotedPath = tuple[Any, ...]
"""Whose result, then names, numbers and elements."""


class StepName(NamedTuple):
    """A step of a flow, whose results are read."""

    flow: str
    id: str


class Rule(NamedTuple):
    """The ``value`` of what the engine says of a step, by the fields that it has beside its result."""

    of: StepName
    value: Callable[[Mapping[str, Any]], object]


class ValueNote(NamedTuple):
    """``compared``: the constants with which the value is compared."""

    path: NotedPath
    use: ValueUse
    compared: tuple[object, ...] = ()


class Operation(NamedTuple):
    """A comparison or a sum as it is written, and what is known of both sides.

    ``is_turned``: a constant is compared with something, not the reverse.
    """

    sign: str
    left: str
    right: str
    is_turned: bool
    of_left: ValueType
    of_right: ValueType


class UnknownField(NamedTuple):
    """A field ``name`` of a value that can only have those of its ``type``. ``owner``: the value, as it is written."""

    owner: str
    name: str
    type: ValueType


@dataclass
class Exploration:
    """One evaluation. It decides, for one name always the same way, first as ``given``, then always as ``further``.

    ``decides``: what it decides by matters for the flow, not only for a text. ``made``: its decisions; ``rules`` what
    some of them are about, ``asked`` the values of which it decided whether they are given. ``walked``: the elements
    that it walked through. ``operations``: the comparisons and sums that it made, by their numbers in the template.
    ``is_vague``: a known value stood for an unknown one, such as 2 for a length. ``failure``: why it has no ``value``.
    """

    given: tuple[bool, ...] = ()
    further: bool = True
    decides: bool = False
    made: dict[str, bool] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    asked: dict[str, NotedPath] = field(default_factory=dict)
    notes: dict[ValueNote, None] = field(default_factory=dict)
    walked: set[NotedPath] = field(default_factory=set)
    operations: dict[int, Operation] = field(default_factory=dict)
    unknown_fields: dict[str, UnknownField] = field(default_factory=dict)
    is_vague: bool = False
    is_silent: bool = False
    walks: ValueUse = ValueUse.WALKED
    filtered: object = None
    failure: Exception | None = None
    value: Any = None

    def decide(self, name: str, rule: Rule | None = None) -> bool:
        number = len(self.made)
        if rule is not None:
            self.rules[name] = rule
        if name not in self.made:
            self.made[name] = self.given[number] if number < len(self.given) else self.further
        return self.made[name]

    def note_operation(self, number: int, made: Operation) -> None:
        """Note an operation, whose sides may have other values each time."""
        before = self.operations.get(number, made)
        one, other = before.of_left | made.of_left, before.of_right | made.of_right
        self.operations[number] = made._replace(of_left=one, of_right=other)

    def run(self, evaluate: Callable[[], T]) -> T:
        token = _current.set(self)
        try:
            return evaluate()
        finally:
            _current.reset(token)


_current: ContextVar[Exploration | None] = ContextVar("exploration", default=None)


def now() -> Exploration:
    return _current.get(None) or Exploration()


def is_exploring() -> bool:
    return _current.get(None) is not None


@contextmanager
def unnoted() -> Iterator[None]:
    """What is read meanwhile is noted elsewhere."""
    exploration = now()
    before, exploration.is_silent = exploration.is_silent, True
    try:
        yield
    finally:
        exploration.is_silent = before


def explorations(most: int, *, decides: bool = False) -> Iterator[Exploration]:
    """With all sequences of decisions, depth first from "always yes" on, if they are at most so many.

    Otherwise, beside the first ones, those in which all decisions but one are the same.
    """
    given: tuple[bool, ...] = ()
    names: dict[str, bool] = {}
    for _ in range(most):
        exploration = Exploration(given, decides=decides)
        yield exploration
        names |= exploration.made
        made = [*exploration.made.values()]
        while made and not made[-1]:
            made.pop()
        if not made:
            return
        given = (*made[:-1], False)
    for further in (True, False):
        chosen = ("", *islice(names, MAX_OTHERS))
        yield from (Exploration((), further, decides, {name: not further}) for name in chosen)


MAX_OTHERS = 32
"""How many decisions are also the only other one."""
MAX_EXPLORATIONS = 16
"""Of how many sequences of decisions all are explored, to find what a template reads."""


def explore(
    evaluate: Callable[[], object], *, most: int = MAX_EXPLORATIONS, decides: bool = False
) -> list[Exploration]:
    """Evaluate with different decisions."""
    found = []
    for exploration in explorations(most, decides=decides):
        try:
            exploration.value = exploration.run(evaluate)
        except Exception as failure:  # a template may raise anything for a value it was not written for
            exploration.failure = failure
        found.append(exploration)
    _note_indispensable(found)
    return found


def _note_indispensable(found: Sequence[Exploration]) -> None:
    """Note the values without which every evaluation fails, such as after a test for null alone."""
    for name, path in {name: path for each in found for name, path in each.asked.items()}.items():
        without = [each.failure is not None for each in found if each.made.get(name) is False]
        if len(path) > 1 and without and all(without):
            for each in found:
                each.notes |= {ValueNote(path, ValueUse.PASSED): None} if each.made.get(name) else {}
