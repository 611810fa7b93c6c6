"""JSON Schemas for the answers of roles."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.yaml_source import key_path


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
