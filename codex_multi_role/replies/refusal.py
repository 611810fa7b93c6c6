"""What an ``error`` in an answer means: the role's refusal, a remark beside its handoff, or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping

ERROR = "error"
_STATUS = "status"
_FAULTS = r"(?:errors?|problems?|issues?)"
_NO_ERROR = re.compile(
    r"[\W_]*+(?:(?:errors?\W++)?(?:none|null|nil|n/?a|not applicable|nothing|undefined|no|false|ok|success"
    rf"|(?:there (?:is|are|was|were) )?no {_FAULTS}(?: (?:and|or) {_FAULTS})?"
    r"(?: (?:(?:was|were) )?(?:found|occurred|detected|reported|encountered|to report|so far))?))?[\W_]*+",
    re.IGNORECASE,
)


def error_in(value: Mapping[str, object], schema: Mapping[str, object] | None) -> str:
    """The text of ``error``; empty if it denies an error, or if the role's own ``schema`` declares the field."""
    text = value.get(ERROR)
    if not isinstance(text, str) or declares_error(schema) or _NO_ERROR.fullmatch(text):
        return ""
    return text.strip()


def is_refusal(value: Mapping[str, object], schema: Mapping[str, object] | None) -> bool:
    """Whether ``value`` has nothing of a handoff, so that its error is all it says.

    With a ``schema``: all required fields that can be empty (texts, lists, objects) are missing or empty. A choice, a
    number or a boolean says nothing, because a model that the schema binds must fill it in.
    """
    required = _required(schema)
    may_be_empty = [name for name in required if _may_be_empty(properties_of(schema).get(name))]
    telling = may_be_empty or value.keys() - required
    return all(_is_empty(value.get(name)) for name in telling if name not in (ERROR, _STATUS))


def denies_error_only(value: Mapping[str, object], schema: Mapping[str, object] | None) -> bool:
    """Whether ``value`` only has an ``error`` that denies one ("none"): neither a handoff nor a refusal."""
    text = value.get(ERROR)
    is_denied = not text or (isinstance(text, str) and _NO_ERROR.fullmatch(text) is not None)
    beside = (each for name, each in value.items() if name != ERROR)
    return ERROR in value and is_denied and not declares_error(schema) and all(map(_is_empty, beside))


def declares_error(schema: Mapping[str, object] | None) -> bool:
    """Whether ``error`` is a field of the role's own handoff, which is then validated like any other.

    One that may be null is how a role declines that a closed schema binds.
    """
    return ERROR in properties_of(schema) and not takes_null(properties_of(schema)[ERROR])


def _required(schema: Mapping[str, object] | None) -> set[str]:
    required = (schema or {}).get("required")
    return set(required) - {ERROR, _STATUS} if isinstance(required, list) else set()


def properties_of(schema: Mapping[str, object] | None) -> Mapping[str, object]:
    """The schemas of the fields that ``schema`` declares, by name."""
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def takes_null(schema: object) -> bool:
    """Whether ``schema`` names null among its types."""
    types = schema.get("type") if isinstance(schema, dict) else None
    return isinstance(types, list) and "null" in types


def _may_be_empty(schema: object) -> bool:
    """Whether a value that fits ``schema`` can be a text, a list or an object of any content."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return not isinstance(schema, dict)
    types = schema.get("type", "string")
    return not {"string", "array", "object"}.isdisjoint([types] if isinstance(types, str) else types)


def _is_empty(value: object) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())
