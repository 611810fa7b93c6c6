"""Reads the records of `events` as typed events; the only place that decides about records of other versions."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

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
    """Set the fields as unpickling does, because a frozen class's ``__init__`` takes four times as long.

    Raises `KeyError` and `TypeError`.
    """
    event_type, defaults, types = _shape(record["type"])
    event = event_type.__new__(event_type)
    values = event.__dict__
    values |= defaults
    values |= record
    for name, outer, inner in types:
        if not isinstance(values[name], outer) or (inner and not _all_fit(values[name], inner)):
            raise TypeError(name)
    return event


@cache
def _shape(name: str) -> tuple[type[RunEvent], Record, list[tuple[str, Any, Any]]]:
    """The class of a type, its defaults, and its fields with their `_split` types. Raises `KeyError`."""
    event_type = _TYPES[name]
    own = [each for each in fields(event_type) if each.name != "at"]
    defaults = {each.name: each.default for each in own if each.default is not MISSING}
    made = {each.name: each.default_factory() for each in own if each.default_factory is not MISSING}
    hints = get_type_hints(event_type)
    return event_type, defaults | made, [(each.name, *_split(hints[each.name])) for each in own]


def _split(hint: Any) -> tuple[Any, Any]:  # noqa: ANN401 - any annotation of a field
    """What ``isinstance`` takes, and the hint of the items of a list or the values of a dict, None for other types."""
    if hint is float:
        return (int, float), None  # JSON has whole numbers, too
    if get_origin(hint) in (list, dict):
        return get_origin(hint), get_args(hint)[-1]
    return hint, None


def _all_fit(items: list[object] | dict[str, object], hint: object) -> bool:
    outer, inner = _split(hint)
    values = items.values() if isinstance(items, dict) else items
    return all(isinstance(each, outer) and (not inner or _all_fit(each, inner)) for each in values)
