"""How a role refuses its part: ``{"error": "<what is missing or wrong>"}``, as every prompt offers.

With a strict schema a model can only say what the schema allows. Providers accept no alternatives at its top level, so
the schema that is sent has an additional field ``error``, null in an ordinary answer.
"""

from __future__ import annotations

from collections.abc import Mapping

ERROR = "error"


def with_error(schema: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """``schema`` as sent: with a field ``error``, unless it declares its own or does not list its fields."""
    if schema is None or not _is_extended(schema):
        return schema
    properties, required = _properties(schema), schema.get("required", [])
    required = list(required) if isinstance(required, list) else []
    needed = [*required, ERROR] if set(required) >= set(properties) else required
    return {**schema, "properties": {**properties, ERROR: {"type": ["string", "null"]}}, "required": needed}


def without_error(value: dict[str, object], schema: Mapping[str, object]) -> dict[str, object]:
    """``value`` without the empty ``error`` that only the sent schema requires."""
    if _is_extended(schema) and value.get(ERROR, "") in ("", None):
        return {key: each for key, each in value.items() if key != ERROR}
    return value


def refusal_in(value: Mapping[str, object], schema: Mapping[str, object] | None) -> str:
    """The reason why ``value`` is not a handoff, or an empty string.

    Fields that the sent schema forces on a model are ignored; any other further field makes ``value`` a handoff.
    """
    reason = value.get(ERROR)
    if not isinstance(reason, str):
        return ""
    says_more = any(each for key, each in value.items() if key not in (ERROR, "status"))
    return "" if says_more and not (schema and _is_extended(schema)) else reason.strip()


def declares_error(schema: Mapping[str, object] | None) -> bool:
    """Whether ``error`` is a field of the role's own handoff, which is then validated like any other."""
    return schema is not None and ERROR in _properties(schema)


def _is_extended(schema: Mapping[str, object]) -> bool:
    return schema.get("type") == "object" and bool(_properties(schema)) and not declares_error(schema)


def _properties(schema: Mapping[str, object]) -> Mapping[str, object]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
