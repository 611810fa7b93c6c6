"""Make an answer fit its schema without touching its content: drop what the schema forbids, trim what it names.

Dropped are unexpected fields of a closed object, and a null for an optional field; a missing field that may be null is
null; blanks around the value of a choice are removed. An answer is corrected only if all of it then fits. And what an
``error`` in an answer means: the role's refusal, a remark beside its handoff, or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from codex_multi_role.reading.schema_validation import mismatches

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


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


MAX_PASSES = 4
"""A correction can uncover another one, inside an alternative of ``anyOf``."""
MAX_CORRECTIONS = 1000
MAX_NAME_CHARACTERS = 60
_DROPPED: Final = object()
_Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Correction:
    """``path`` of a value, and what replaces it."""

    path: _Path
    value: object = _DROPPED

    def apply(self, root: Any) -> None:  # noqa: ANN401 - any JSON
        *above, last = self.path
        for key in above:
            root = root[key]
        if self.value is _DROPPED:
            root.pop(last, None)
        else:
            root[last] = self.value

    def __str__(self) -> str:
        place = "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        if len(place) > MAX_NAME_CHARACTERS:
            place = f"{place[:MAX_NAME_CHARACTERS]}…"
        return f"{place} dropped" if self.value is _DROPPED else f"{place} read as {json.dumps(self.value)}"


@dataclass(frozen=True)
class Fitting:
    """A corrected answer, and its corrections in words, by the path that they concern."""

    value: dict[str, object]
    corrections: dict[_Path, str]


def fit(value: Mapping[str, object], schema: Mapping[str, object]) -> Fitting | None:
    """``value`` as it fits ``schema``, or None if no correction achieves that. Raises as `schema_problems`."""
    corrected: dict[str, object] = deepcopy(dict(value))
    made: dict[_Path, str] = {}
    for _ in range(MAX_PASSES):
        with mismatches(corrected, schema) as errors:
            corrections = _corrections(errors)
        if corrections is None:
            return None
        if not corrections:
            return Fitting(corrected, made) if corrected else None
        for each in corrections:
            each.apply(corrected)
            if each.value is not None:  # a null says no more than its absence
                made[each.path] = str(each)
    return None


def _corrections(errors: Iterable[ValidationError]) -> list[Correction] | None:
    """The corrections of all errors; None if one error cannot be corrected, or there are too many."""
    corrections: list[Correction] = []
    for error in errors:
        found = _corrections_of(error)
        if not found or len(corrections) > MAX_CORRECTIONS:
            return None
        corrections += found
    return corrections


def _corrections_of(error: ValidationError) -> list[Correction] | None:
    value: Any = error.instance
    rule: Any = error.validator_value
    path = tuple(error.absolute_path)
    if value is None:
        return [Correction(path)] if path and isinstance(path[-1], str) else None
    match error.validator:
        case "required":
            return _with_nulls(path, value, rule, error.schema)
        case "additionalProperties" if rule is False:
            return _without_unexpected(path, value, error.schema)
        case "enum" | "const" if path and isinstance(value, str):
            choices = rule if error.validator == "enum" else [rule]
            return [Correction(path, value.strip())] if value.strip() in choices else None
        case "anyOf" | "oneOf":
            return _of_only_alternative(error)
    return None


def _without_unexpected(path: _Path, value: Mapping[str, object], schema: Any) -> list[Correction] | None:  # noqa: ANN401
    """None if no field is left: the object is not what was asked for."""
    patterns = schema.get("patternProperties", ())
    known = {*schema.get("properties", ()), *(name for name in value for each in patterns if re.search(each, name))}
    unexpected = [name for name in value if name not in known]
    return [Correction((*path, name)) for name in unexpected] if len(unexpected) < len(value) else None


def _with_nulls(
    path: _Path,
    value: Mapping[str, object],
    names: Iterable[str],
    schema: Any,  # noqa: ANN401 - as in jsonschema
) -> list[Correction] | None:
    """Null for each missing field that may be null; None if another one is missing too, or the object is empty."""
    missing = [name for name in names if name not in value]
    nullable = all(takes_null(schema.get("properties", {}).get(name)) for name in missing)
    return [Correction((*path, name), None) for name in missing] if nullable and value else None


def _of_only_alternative(error: ValidationError) -> list[Correction] | None:
    """The corrections that make the only correctable alternative fit."""
    alternatives = groupby(error.context or (), key=lambda each: each.schema_path[0])
    possible = [found for _, errors in alternatives if (found := _corrections(errors))]
    return possible[0] if len(possible) == 1 else None
