"""What is known of a value before a run: its kinds, its possible values, and the fields of a mapping."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

# In this order: a boolean is a number for Python, too.
_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    tuple: "array",
    Mapping: "object",
    NoneType: "null",
}
IN_WORDS = {"string": "a text", "number": "a number", "boolean": "true or false", "array": "a list"}
IN_WORDS |= {"object": "an object", "null": "null"}
"""The kinds of values, which are JSON's types."""
_ORDERED = frozenset({"string", "number", "array"})
MOST_SHOWN = 12


@dataclass(frozen=True)
class ValueType:
    """``kinds``: of which kinds it may be. ``values``: all that are possible; None if they are not known.

    ``fields``: those that a mapping can have. It can have others if it is ``open``.
    """

    kinds: frozenset[str]
    values: frozenset[object] | None = None
    fields: Fields = field(default_factory=dict)
    is_open: bool = True

    @classmethod
    def of(cls, *kinds: str) -> ValueType:
        return cls(frozenset(kinds))

    @classmethod
    def of_constant(cls, value: object) -> ValueType:
        kind = kind_of(value)
        return cls(frozenset({kind}), frozenset({value}) if isinstance(value, Hashable) else None) if kind else ANY

    @classmethod
    def of_fields(cls, fields: Fields, *, is_open: bool = False) -> ValueType:
        """A mapping that can have these fields; others only if it ``is_open``."""
        return cls(frozenset({"object"}), fields=fields, is_open=is_open)

    def __or__(self, other: ValueType) -> ValueType:
        """The type of a value that is of one of both types."""
        values = None if self.values is None or other.values is None else self.values | other.values
        values = None if self.kinds == other.kinds == {"boolean"} and len(values or ()) == 2 else values
        mappings = [each for each in (self, other) if "object" in each.kinds]
        part = mappings[0] if len(mappings) == 1 else ANY
        return ValueType(self.kinds | other.kinds, values, part.fields, part.is_open)

    def kinds_only(self) -> ValueType:
        return ValueType(self.kinds)

    def names_only(self) -> ValueType:
        """Which fields it can have, and nothing of values."""
        return ValueType(ANY.kinds, None, {name: each.names_only() for name, each in self.fields.items()}, self.is_open)

    def can_equal(self, other: ValueType) -> bool:
        """A boolean may equal a number."""
        if self.values is not None and other.values is not None:
            return bool(self.values & other.values)
        return bool(_comparable(self) & _comparable(other))

    def can_be_less(self, other: ValueType) -> bool:
        """Whether ``<`` does not fail for every pair of values."""
        return bool(_comparable(self) & _comparable(other) & _ORDERED)

    @property
    def kind(self) -> str:
        """The only kind, if there is one."""
        return "".join(self.kinds) if len(self.kinds) == 1 else ""

    @property
    def kinds_in_words(self) -> str:
        return " or ".join(words for kind, words in IN_WORDS.items() if kind in self.kinds)

    @property
    def in_words(self) -> str:
        if self.values is None:
            return self.kinds_in_words
        shown = sorted(repr(value) for value in self.values if value != "")
        return f"one of {', '.join(shown[:MOST_SHOWN])}" if len(shown) > 1 else "".join(shown) or "empty"


def _comparable(known: ValueType) -> frozenset[str]:
    return frozenset("number" if kind == "boolean" else kind for kind in known.kinds)


Fields = Mapping[str, ValueType]
ANY = ValueType.of(*IN_WORDS)
TEXT, NUMBER, BOOLEAN = ValueType.of("string"), ValueType.of("number"), ValueType.of("boolean")
LIST, MAPPING = ValueType.of("array"), ValueType.of("object")
COUNTABLE = ValueType.of("array", "string", "object")
"""What has a length."""


def one_of(*values: object) -> ValueType:
    """The type of these constants."""
    return reduce(or_, map(ValueType.of_constant, values))


def type_of_model(kind: type[BaseModel]) -> ValueType:
    """A mapping with the fields of ``kind`` under the names that templates use; any, if it may have others."""
    if kind.model_config.get("extra") == "allow":
        return MAPPING
    declared = kind.model_fields.items()
    fields = {field.serialization_alias or name: type_of_annotation(field.annotation) for name, field in declared}
    return ValueType.of_fields(fields | dict.fromkeys(kind.model_computed_fields, ANY))


def type_of_annotation(annotation: Any) -> ValueType:  # noqa: ANN401 - whatever Python accepts
    """What an annotation says; `ANY` for all that is not plain data."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of_annotation(arguments[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(type_of_annotation, arguments))
    if origin is Literal:
        return one_of(*arguments)
    written = origin or annotation
    if not isinstance(written, type):
        return ANY
    if issubclass(written, BaseModel):
        return type_of_model(written)
    return next((ValueType.of(name) for each, name in _KINDS.items() if issubclass(written, each)), ANY)


def type_of_schema(schema: object) -> ValueType:
    """What the types, choices and properties of a JSON Schema say; its other keywords can only narrow that."""
    if not isinstance(schema, Mapping):
        return ANY
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return one_of(*choices)
    named, properties = schema.get("type", ANY.kinds), schema.get("properties", {})
    kinds = {"number" if each == "integer" else each for each in ([named] if isinstance(named, str) else named)}
    is_open = schema.get("additionalProperties") is not False or "patternProperties" in schema
    return ValueType(frozenset(kinds), None, {name: type_of_schema(each) for name, each in properties.items()}, is_open)


def kind_of(value: object) -> str:
    """The kind of a constant; empty if JSON has none for it."""
    return next((name for each, name in _KINDS.items() if isinstance(value, each)), "")


def fields_named(names: Iterable[str]) -> Fields:
    """Fields of which only the names are known."""
    return dict.fromkeys(names, ANY)
