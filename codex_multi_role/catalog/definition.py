"""The base class of everything read from YAML, and the keys that roles and flows share."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema

from codex_multi_role.reading.places import Place, WrongKey
from codex_multi_role.reading.schema_validation import require_valid

Alternatives = Mapping[str, Collection[str]]
NULL = {"type": "null"}
yaml_key = methodcaller("removesuffix", "_")
"""The key of a field whose name Python reserves: ``with`` for ``with_``."""
Kept = TypeVar("Kept")
Accepted = TypeVar("Accepted")


class Takes(Generic[Kept, Accepted]):
    """A field's type. Type checkers take the argument's from the setter; pydantic sees and makes a ``Kept``."""

    if TYPE_CHECKING:

        def __get__(self, owner: object, kind: type | None = None) -> Kept: ...
        def __set__(self, owner: object, value: Accepted) -> None: ...
    else:

        def __class_getitem__(cls, types):
            return Annotated[types[0], cls.__name__]


Keys = Mapping[str, object]
Texts = list[str] | tuple[str, ...]  # not a Sequence, which a single text is as well
Nested = Takes[Kept, Kept | Keys]
Items = Takes[tuple[Kept, ...], Sequence[Kept | Keys]]
Named = Takes[dict[Kept, Accepted], Keys]


def optional(default: object, description: str) -> Any:  # noqa: ANN401 - whatever the field's type
    """A field of type `Takes` that may be left out: type checkers would compare a default in `Field` with that."""
    return Field(default=default, description=description)


class Definition(BaseModel):
    """A frozen model that rejects unknown keys. A key without a value (``model:``) counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=yaml_key)
    alternatives: ClassVar[Alternatives] = {}
    """The keys of which exactly one is given, each with those that belong to it."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, data: object) -> object:
        if isinstance(data, Mapping):
            return {key: value for key, value in data.items() if value is not None or key not in cls.known_keys()}
        return data

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if not self.alternatives:
            return self
        if len(forms := self._forms()) != 1:
            raise WrongKey(f"give exactly one of {', '.join(self.alternatives)}", *forms[1:2])
        for key in self._given():
            owners = [form for form, own in self.alternatives.items() if key in own]
            if owners and forms[0] not in (key, *owners):
                raise WrongKey(f"{key} belongs to {' or '.join(owners)}", key)
        return self

    @property
    def form(self) -> str:
        """The one of its ``alternatives`` that it is."""
        return self._forms()[0]

    def _forms(self) -> list[str]:
        """The alternatives that are given and do not belong to another one."""
        given = [key for key in self.alternatives if key in self._given()]
        return [key for key in given if not any(key in self.alternatives[other] for other in given)]

    def _given(self) -> list[str]:
        return [self.written_name(name) for name in type(self).model_fields if name in self.model_fields_set]

    @classmethod
    def known_keys(cls) -> set[str]:
        """The keys as people write them."""
        return set(map(cls.written_name, cls.model_fields))

    @classmethod
    def written_name(cls, field: str) -> str:
        return cls.model_fields[field].alias or field

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        """A key that may be left out may also have no value; keys that exclude each other are alternatives."""
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        for name, value in schema.get("properties", {}).items():
            if name not in schema.get("required", ()):
                schema["properties"][name] = _or_null(value)
        if cls.alternatives:
            schema["oneOf"] = list(_one_of(cls.alternatives))
        return reference


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema, extended to null; its title and default stay outside, where editors look for them."""
    if not schema or schema == NULL or NULL in schema.get("anyOf", ()):
        return schema
    outer: dict[str, Any] = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in outer}
    ways = inner["anyOf"] if [*inner] == ["anyOf"] else [inner]
    return {**outer, "anyOf": [*ways, NULL]}


def _one_of(alternatives: Alternatives) -> Iterator[dict[str, Any]]:
    """A JSON Schema for each alternative: its key is given, and no key of the others."""
    every = {*alternatives}.union(*alternatives.values())
    for key, own in alternatives.items():
        absent = sorted(every - {key, *own})
        yield {"required": [key], "properties": {key: {"not": NULL}} | dict.fromkeys(absent, NULL)}


def _wanting(wanted: str, refused: UnionType | type) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, refused):
            raise ValueError(f"must be {wanted}, not {json.dumps(value, ensure_ascii=False)}")
        return value

    return BeforeValidator(check)


NUMBER = _wanting("a number", bool | str)
WHOLE_NUMBER = _wanting("a whole number", bool | str)
WHOLE_NUMBER_OR_TEXT = _wanting("a whole number", bool)
"""The last annotation of each field for numbers: pydantic would convert texts such as ``1_0``, and booleans."""
DAY = _wanting("a date such as 2026-11-23", int | float)
"""Likewise for dates: pydantic would take a number for seconds since 1970."""


def check_glob(glob: str) -> str:
    """Normalize a path relative to the workspace, which may have wildcards: ``./tests/`` becomes ``tests``."""
    parts = glob.split("/")
    if glob.startswith(("/", "~")) or "\\" in glob or ".." in parts:
        raise ValueError(f'"{glob}" must be relative to the workspace, such as tests/**')
    plain = "/".join(part for part in parts if part not in ("", "."))
    if not plain or not glob.isprintable():
        raise ValueError(f"{glob!r} names nothing; write a path such as tests/**")
    return plain


def matching(pattern: str, problem: str) -> AfterValidator:
    """A validator of texts that the whole ``pattern`` matches; ``{}`` in the ``problem`` stands for the text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(problem.replace("{}", text))
        return text

    return AfterValidator(check)


def pattern_in_schema(pattern: str) -> WithJsonSchema:
    """What the JSON Schema says of a text that is `matching` the pattern."""
    return WithJsonSchema({"type": "string", "pattern": f"^(?:{pattern})$"})


ProtectedGlobs = tuple[Annotated[str, AfterValidator(check_glob)], ...]


def schema_or_path(value: object) -> object:
    """Pydantic validator for ``output_schema`` as written (a union would blur the key path of its errors)."""
    if isinstance(value, dict | str):
        return value
    raise ValueError("must be a JSON Schema, or the path of a JSON or YAML file that holds one")


def check_schema(schema: object, place: Place) -> dict[str, JsonValue]:
    """Return ``schema``, written at ``place``, if it is a valid JSON Schema (2020-12). Raises ``DefinitionError``."""
    # Imported only for a definition that needs it, as in `templates`: jsonschema and Jinja2 cost 0.05 s each.
    import jsonschema

    if not isinstance(schema, dict):
        raise place.error("must be a mapping: a JSON Schema")
    try:
        require_valid(json.dumps(schema))
    except jsonschema.SchemaError as error:
        inner = replace(place, path=(*place.path, *error.absolute_path))
        raise inner.error(f"not a valid JSON Schema: {error.message}") from error
    return schema


def closed_properties(schema: Mapping[str, object]) -> dict[str, object] | None:
    """The only properties that an object with that JSON Schema can have; None if it may have others."""
    properties = schema.get("properties")
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return properties if is_closed and isinstance(properties, dict) else None
