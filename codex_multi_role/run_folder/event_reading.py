"""Reads the records of `events` as typed events; the only place that decides about records of other versions."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from codex_multi_role.run_folder.events import Record, RunEvent, UnknownEvent

_TYPES = {each.type: each for each in RunEvent.__subclasses__() if each is not UnknownEvent}


def event_of(record: Record) -> RunEvent:
    """The event that ``record`` holds. Raises nothing, whatever the record contains.

    Missing fields get their defaults. Returns an `UnknownEvent` if the type does not exist in this version, a field
    without a default is missing, or a value has the wrong type.
    """
    at = ""
    try:
        datetime.fromisoformat(record["at"])
        at = record["at"]
        return _read(record)
    except (KeyError, TypeError, ValueError):
        return UnknownEvent(at=at)


def _read(record: Record) -> RunEvent:
    """Raises `KeyError` and `TypeError`.

    Sets the fields as unpickling does, because a frozen class's ``__init__`` takes four times as long.
    """
    event_type, defaults, plain, nested = _shape(record["type"])
    event = event_type.__new__(event_type)
    values = vars(event)
    values.update(defaults)
    values.update(record)
    for name, types in plain:
        if not isinstance(values[name], types):
            raise TypeError(name)
    for name, hint in nested:
        if not _fits(values[name], hint):
            raise TypeError(name)
    return event


class _Shape(NamedTuple):
    """What a record must be. ``plain``: the types of each field for ``isinstance``; ``nested``: lists and dicts."""

    event_type: type[RunEvent]
    defaults: Record
    plain: list[tuple[str, Any]]
    nested: list[tuple[str, Any]]


@cache
def _shape(name: str) -> _Shape:
    event_type = _TYPES[name]
    own = [each for each in fields(event_type) if each.name != "at"]
    hints = [(each.name, get_type_hints(event_type)[each.name]) for each in own]
    return _Shape(
        event_type,
        {each.name: _default(each) for each in own if _default(each) is not MISSING},
        [(field, _outer(hint)) for field, hint in hints if not _inner(hint)],
        [(field, hint) for field, hint in hints if _inner(hint)],
    )


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _fits(value: object, hint: object) -> bool:
    if not isinstance(value, _outer(hint)):
        return False
    items = value.values() if isinstance(value, dict) else value
    return all(_fits(item, inner) for inner in _inner(hint) for item in items)


def _outer(hint: Any) -> Any:  # noqa: ANN401 - an annotation, and what ``isinstance`` takes
    """The type without that of its items; JSON may have a whole number for a float."""
    return (int, float) if hint is float else hint if isinstance(hint, UnionType) else get_origin(hint) or hint


def _inner(hint: object) -> tuple[Any, ...]:
    """The type of the items of a list, or of the values of a dict; empty for any other type."""
    return () if isinstance(hint, UnionType) else get_args(hint)[-1:]
