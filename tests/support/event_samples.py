"""The fields of one event of every class, none of which has its default."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from codex_multi_role.run_folder import Record, RunEvent
from codex_multi_role.run_folder.event_log import TYPES

PLAIN = {str: "a", int: 7, float: 0.5, bool: True, object: 1}


def sample(annotation: Any) -> Any:
    """A value of that type."""
    match get_origin(annotation), get_args(annotation):
        case type() as kind, (inner,) if kind is list:
            return [sample(inner)]
        case type() as kind, (_, inner) if kind is dict:
            return {"a": sample(inner)}
        case _, (first, *_):
            return sample(first)
    return PLAIN[annotation]


def fields_of(kind: type[RunEvent]) -> Record:
    hints = get_type_hints(kind)
    return {field.name: sample(hints[field.name]) for field in fields(kind) if field.name != "at"}


EVENT_FIELDS = {kind: fields_of(kind) for kind in TYPES.values()}
