"""Pydantic's errors in the words of someone who writes YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel

from codex_multi_role.reading.nearest import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_WORDS = {
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary) should\b")
_SHOWN_CHARACTERS = 60


def problem_and_hint(model: type[BaseModel], detail: ErrorDetails) -> tuple[str, str]:
    """The problem, with the nearest known key for an unknown one, and what to do (or an empty string)."""
    if detail["type"] == "extra_forbidden":
        known = known_keys(model, detail["loc"][:-1])
        return f"unknown key{did_you_mean(str(detail['loc'][-1]), known)}", f"Known keys: {', '.join(known)}."
    if detail["type"] == "missing":
        return "is missing", ""
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"]), ""
    if detail["type"] == "too_short":
        return f"must have at least {detail['ctx']['min_length']}", ""
    words = _WORDS.get(detail["type"], _SUBJECT.sub("must", detail["msg"]))
    return f"{words}, not {_shown(detail['input'])}", ""


def known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The allowed keys of a mapping at ``location`` inside ``model``. Indexes and free keys stay in the same models."""
    models = [model]
    for part in location:
        fields = [
            field for known in models for name, field in known.model_fields.items() if part in (name, field.alias)
        ]
        models = [inner for field in fields for inner in _models(field.annotation)] or models
    return [field.alias or name for known in models for name, field in known.model_fields.items()]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
