"""The base class of everything read from YAML, and the keys that roles and flows share."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, ValidationInfo, field_validator, model_validator

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.yaml_source import key_path


class Definition(BaseModel):
    """A frozen model that rejects unknown keys. A key without a value (``model:``) counts as not given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, data: object) -> object:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data

    @field_validator("*", mode="before")
    @classmethod
    def _boolean_is_no_number(cls, value: object, field: ValidationInfo) -> object:
        if isinstance(value, bool) and _is_number(cls, str(field.field_name)):
            raise ValueError(f"must be a number, not {str(value).lower()}")
        return value


@cache
def _is_number(model: type[Definition], field: str) -> bool:
    kinds = _types_in(model.model_fields[field].annotation)
    return bool(kinds & {int, float}) and bool not in kinds


def _types_in(annotation: object) -> set[object]:
    """The types that the annotation is made of, also within ``Annotated`` and a union."""
    return {annotation}.union(*map(_types_in, get_args(annotation)))


def check_glob(glob: str) -> str:
    """Normalize a path relative to the workspace, which may have wildcards: ``./tests/`` becomes ``tests``."""
    parts = glob.split("/")
    if glob.startswith(("/", "~")) or "\\" in glob or ".." in parts:
        raise ValueError(f'"{glob}" must be relative to the workspace, such as tests/**')
    plain = "/".join(part for part in parts if part not in ("", "."))
    if not plain or not glob.isprintable():
        raise ValueError(f"{glob!r} names nothing; write a path such as tests/**")
    return plain


ProtectedGlobs = tuple[Annotated[str, AfterValidator(check_glob)], ...]


def schema_or_path(value: object) -> object:
    """Pydantic validator for ``output_schema`` as written (a union would blur the key path of its errors)."""
    if isinstance(value, dict | str):
        return value
    raise ValueError("must be a JSON Schema, or the path of a JSON or YAML file that holds one")


def check_schema(schema: object, file: Path, key: str = "") -> dict[str, JsonValue]:
    """Return ``schema`` if it is a valid JSON Schema (2020-12). ``file`` and ``key``, if any, are its place.

    Raises ``DefinitionError`` with the key path down to the mistake.
    """
    # Imported only for a definition that needs it, as in `templates`: jsonschema and Jinja2 cost 0.05 s each.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    outer = (key,) if key else ()
    if not isinstance(schema, dict):
        raise DefinitionError(
            f"{file}: {key_path(outer) or 'line 1'}: must be a mapping, not a {type(schema).__name__}"
        )
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = key_path((*outer, *error.absolute_path)) or "line 1"
        raise DefinitionError(f"{file}: {place}: not a JSON Schema: {error.message}") from error
    return schema
