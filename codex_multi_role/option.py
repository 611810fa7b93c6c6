"""What is declared together with an option of a run, and what follows from its type."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Flag, StrEnum, auto
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from codex_multi_role.errors import UsageError

Value = TypeVar("Value")
DECLARED = "option"
"""Where a field keeps its `Option`."""
WORDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    tuple: "a list of texts",
    dict: "a mapping with names as keys",
}


class Section(StrEnum):
    """The headings of options in ``--help``, in their order."""

    GOAL = "Goal and flow"
    TEAM = "Team and workspace"
    MODELS = "Models and Codex"
    WITHOUT_A_MODEL = "Without a model"
    LIMITS = "Limits"
    TESTS = "Tests"
    QUESTIONS = "Questions"
    OUTPUT = "Output"


class Use(Flag):
    """Where an option counts.

    ``RESUME``, ``FORK``: a resumed run or a fork may change it. ``COMMON``: runs that are started together may have it
    in common; ``OWN``: each its own. ``BOUND``: the worst case of a run depends on it. ``LOCAL``: it means nothing on
    another machine or in another checkout. ``TRUST``: it names a place or a program, so that what a record says counts
    only as `own_records` has it; ``OUTSIDE``: only where tests run outside the sandbox. ``DECIDES``: it decides in
    place of this user. Settings of others with one of these three count once they are trusted.
    """

    RESUME = auto()
    FORK = auto()
    COMMON = auto()
    OWN = auto()
    BOUND = auto()
    LOCAL = auto()
    TRUST = auto()
    OUTSIDE = auto()
    DECIDES = auto()
    ANYWHERE = RESUME | FORK | COMMON


@dataclass(frozen=True)
class Range:
    """The numbers from ``minimum`` to ``maximum``; ``above``: without the minimum itself. Infinity is in none."""

    minimum: float
    maximum: float = math.inf
    above: bool = False

    def __contains__(self, value: float) -> bool:
        is_enough = value > self.minimum if self.above else value >= self.minimum
        return is_enough and value <= self.maximum and value < math.inf

    def __str__(self) -> str:
        least = f"{'more than' if self.above else 'at least'} {self.minimum:g}"
        return least if self.maximum == math.inf else f"{least} and at most {self.maximum:.0f}"


@dataclass(frozen=True)
class Option:
    """An option of a run: a keyword, a flag, a key of settings files and of ``run.json``, and an environment variable.

    ``section``: by default that of the group. ``flags``: by default made from the name. ``shown_default``: in words,
    where it is None. ``path``: what a path must lead to. ``is_set_once``: mostly set once per project, so that long
    ``--help`` texts only name it. ``name``, ``type`` and ``default`` are those of the field that it is declared with.
    """

    help: str
    metavar: str = ""
    section: Section | None = None
    flags: tuple[str, ...] = ()
    shown_default: str = ""
    range: Range | None = None
    path: Literal["any", "folder", "file", "new file"] = "any"
    use: Use = Use.ANYWHERE
    is_set_once: bool = False
    name: str = ""
    type: Any = None
    default: Any = None

    @cached_property
    def is_optional(self) -> bool:
        return NoneType in get_args(self.type)

    @cached_property
    def kind(self) -> type:
        """One of `WORDS`: the type without None, and without the types of what it contains."""
        origin = get_origin(self._type) or self._type
        return dict if origin is Mapping else str if origin is Literal else origin

    @cached_property
    def choices(self) -> tuple[str, ...]:
        return get_args(self._type) if get_origin(self._type) is Literal else ()

    @property
    def _type(self) -> Any:  # noqa: ANN401 - a type, or a form of one
        return next(each for each in get_args(self.type) if each is not NoneType) if self.is_optional else self.type

    @property
    def flag(self) -> str:
        return self.flags[-1] if self.flags else f"--{self.name.replace('_', '-')}"

    def arguments(self, value: object) -> Iterator[tuple[str, ...]]:
        """What is typed to give ``value``: a flag, or flags with a text each."""
        if isinstance(value, bool):
            yield (self.flag if value else f"--no-{self.flag.removeprefix('--')}",)
        elif isinstance(value, Mapping):
            yield from ((self.flag, f"{name}={as_typed(each)}") for name, each in value.items())
        elif isinstance(value, list | tuple):
            yield from ((self.flag, str(each)) for each in value)
        else:
            yield self.flag, str(value)

    def checked(self, value: object) -> Any:  # noqa: ANN401 - of the declared type
        """``value`` as a run has it, such as a path for a text. Raises `UsageError` that names the option."""
        if value is None and self.is_optional:
            return None
        right = _converted(self.kind, value)
        if right is None or (self.choices and right not in self.choices):
            raise self._error(" or ".join(self.choices) or WORDS[self.kind], value)
        if self.range is not None and right not in self.range:
            raise self._error(str(self.range), value)
        return right

    def _error(self, wanted: str, value: object) -> UsageError:
        told = f"{value:g}" if isinstance(value, float) else repr(value)
        return UsageError(f"{self.name} must be {wanted}, not {told}")


def _converted(kind: type, value: object) -> Any:  # noqa: ANN401 - of that kind
    """``value`` as a ``kind`` of `WORDS`; None if it is none."""
    match value:
        case bool():
            return value if kind is bool else None
        case int() | float() if kind is float or isinstance(value, kind):
            return value
        case str() | os.PathLike() if kind is Path:
            return Path(value)
        case str() if kind is str:
            return value
        case list() | tuple() if kind is tuple and all(isinstance(each, str) for each in value):
            return tuple(value)
        case Mapping() if kind is dict and all(isinstance(each, str) for each in value):
            return dict(value)
    return None


def as_typed(value: object) -> str:
    """The value of an input as it would be typed: JSON is YAML as well."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def option(default: Value, help: str, metavar: str = "", **more: Any) -> Value:  # noqa: ANN401 - see `Option`
    """A field of a dataclass of options; the rest are the fields of its `Option`."""
    metadata = {DECLARED: Option(help, metavar, **more, default=default)}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)  # type: ignore[return-value]  # as dataclasses has it
    return field(default=default, metadata=metadata)


def options_in(kind: Any) -> dict[str, Option]:  # noqa: ANN401 - a dataclass with a ``section``
    """The options that the dataclass ``kind`` declares, in order."""
    types = get_type_hints(kind)
    declared = {each.name: each.metadata[DECLARED] for each in fields(kind) if DECLARED in each.metadata}
    return {
        name: replace(each, name=name, type=types[name], section=each.section or kind.section)
        for name, each in declared.items()
    }
