"""Pydantic's errors in the words of someone who writes YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel, ValidationError

from codex_multi_role.errors import DefinitionError
from codex_multi_role.reading.former_keys import NOW
from codex_multi_role.reading.nearest import did_you_mean, find_nearest
from codex_multi_role.reading.places import Place, WrongKey

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

KeyPath = tuple[int | str, ...]
_TYPES = {
    "model": "a mapping",
    "dict": "a mapping",
    "mapping": "a mapping",
    "tuple": "a list",
    "list": "a list",
    "string": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "decimal": "a number",
    "date": "a date such as 2026-01-31",
}
"""What a value must be, by the first word of pydantic's error types (``int_type``, ``int_parsing``)."""
_BOUNDS = {
    "greater_than_equal": "at least {ge:.12g}",
    "less_than_equal": "at most {le:.12g}",
    "greater_than": "more than {gt:.12g}",
    "less_than": "less than {lt:.12g}",
    "string_pattern_mismatch": "a text of the form {pattern}",
}
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value) should (be )?")
_SHOWN_CHARACTERS = 60


def problems_of(model: type[BaseModel], error: ValidationError, data: object, root: Place) -> list[DefinitionError]:
    """One error for each mistake in ``data``, with its place below ``root``."""
    by_place: dict[KeyPath, list[ErrorDetails]] = {}
    found = [(written_path(detail["loc"], data), detail) for detail in error.errors(include_url=False)]
    parents = {path[:depth] for path, _ in found for depth in range(len(path))}
    misspelt = {meant for path, detail in found for meant in _meant_keys(model, path, detail)}
    for path, detail in found:
        # Pydantic calls a list too short if all its items are invalid; then only the items matter.
        is_noise = (detail["type"] == "too_short" and path in parents) or (
            detail["type"] == "missing" and (*path, detail["loc"][-1]) in misspelt
        )
        if not is_noise:
            by_place.setdefault((*path, detail["loc"][-1]) if detail["type"] == "missing" else path, []).append(detail)
    return [_problem(model, path, details, root) for path, details in by_place.items()]


def written_path(location: KeyPath, data: object) -> KeyPath:
    """The part of pydantic's ``location`` that exists in ``data``: it also names the alternatives of a union."""
    path: list[int | str] = []
    for part in location:
        is_item = isinstance(data, list | tuple) and isinstance(part, int) and part < len(data)
        if is_item or (isinstance(data, Mapping) and part in data):
            data = data[part]  # type: ignore[index]  # checked above
            path.append(part)
    return tuple(path)


def _meant_keys(model: type[BaseModel], path: KeyPath, detail: ErrorDetails) -> Iterator[KeyPath]:
    if detail["type"] == "extra_forbidden":
        known = known_keys(model, detail["loc"][:-1])
        yield from ((*path[:-1], name) for name in find_nearest(str(path[-1]), known))


def _problem(model: type[BaseModel], path: KeyPath, details: Sequence[ErrorDetails], root: Place) -> DefinitionError:
    """The error of all ``details`` of one place: there are several only for the alternatives of a union."""
    detail = details[0]
    if detail["type"] in ("extra_forbidden", "invalid_key"):
        key = str(path[-1])
        owner = next(_owners(model, detail["loc"][:-1], key), "")
        place, known = Place(root.file, path[:-1]), known_keys(model, detail["loc"][:-1])
        return (
            place.key(key).error(f'"{key}" is now {NOW[key]}') if key in NOW else place.unknown_key(key, known, owner)
        )
    place = Place(root.file, path)
    if detail["type"] == "missing":
        return Place(root.file, path[:-1]).key(str(path[-1])).error(f'missing key "{path[-1]}"')
    if detail["type"] == "value_error":
        error = detail["ctx"]["error"]
        below = error.path if isinstance(error, WrongKey) else ()
        return replace(place, path=(*path, *below), named=min(1, len(below))).error(str(error))
    if detail["type"] in ("too_short", "string_too_short"):
        return place.error("must not be empty")
    wanted = " or ".join(dict.fromkeys(map(_wanted, details)))
    hint = how_to_quote(place, detail["input"]) if wanted == "text" else ""
    return place.error(f"must be {wanted}, not {_in_json(detail['input'])}{_nearest(detail)}", hint)


def how_to_quote(place: Place, value: object) -> str:
    """What to write instead of a word or a number that YAML does not read as text, such as ``no``."""
    written = place.written() if isinstance(value, bool | int | float) else ""
    return f'Quote it: "{written}". Without quotes, YAML reads it as {_in_json(value)}.' if written else ""


def _wanted(detail: ErrorDetails) -> str:
    if detail["type"] == "literal_error":
        return str(detail["ctx"]["expected"]).replace("'", '"')
    if detail["type"] in _BOUNDS:
        return _BOUNDS[detail["type"]].format_map(detail["ctx"])
    known = _TYPES.get(detail["type"], _TYPES.get(detail["type"].partition("_")[0]))
    return known or _SUBJECT.sub("", detail["msg"])


def _nearest(detail: ErrorDetails) -> str:
    """A suggestion for a text that is not one of a few."""
    if detail["type"] != "literal_error" or not isinstance(detail["input"], str):
        return ""
    return did_you_mean(detail["input"], re.findall(r"'(.*?)'", str(detail["ctx"]["expected"])))


def known_keys(model: type[BaseModel], location: KeyPath) -> list[str]:
    """The allowed keys of a mapping at ``location`` inside ``model``."""
    return [key for known in _models_at(model, location) for key, _ in _keys(known)]


def _owners(model: type[BaseModel], location: KeyPath, key: str) -> Iterator[str]:
    """What takes ``key`` one level below the mapping at ``location``."""
    for name, field in (each for known in _models_at(model, location) for each in _keys(known)):
        if any(key == own for inner in _models(field.annotation) for own, _ in _keys(inner)):
            yield f"an entry of {name}" if get_origin(field.annotation) in (tuple, list) else name


def _keys(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The fields by the keys that people write."""
    return ((field.alias or name, field) for name, field in model.model_fields.items())


def _models_at(model: type[BaseModel], location: KeyPath) -> list[type[BaseModel]]:
    """The models of a mapping at ``location`` inside ``model``. Indexes and free keys stay in the same models.

    The name of a model chooses it among several.
    """
    models = [model]
    for part in location:
        models = [each for each in models if each.__name__ == part] or models
        fields = [
            field for known in models for name, field in known.model_fields.items() if part in (name, field.alias)
        ]
        models = [inner for field in fields for inner in _models(field.annotation)] or models
    return models


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _in_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
