"""Make an answer fit its schema without touching its content: drop what the schema forbids, trim what it names.

Dropped are unexpected fields of a closed object, and a null for an optional field; a missing field that may be null is
null; blanks around the value of a choice are removed. An answer is corrected only if all of it then fits.
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
from codex_multi_role.replies.refusal import takes_null

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

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
    known = {*schema.get("properties", ()), *_matching(value, schema.get("patternProperties", ()))}
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


def _matching(names: Iterable[str], patterns: Iterable[str]) -> set[str]:
    return {name for name in names if any(re.search(pattern, name) for pattern in patterns)}


def _of_only_alternative(error: ValidationError) -> list[Correction] | None:
    """The corrections that make the only correctable alternative fit."""
    alternatives = groupby(error.context or (), key=lambda each: each.schema_path[0])
    possible = [found for _, errors in alternatives if (found := _corrections(errors))]
    return possible[0] if len(possible) == 1 else None
