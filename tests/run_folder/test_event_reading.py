"""Events as they are read: what was written, whatever another version wrote, and what is damaged."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest

from codex_multi_role.reading.json_files import read_records
from codex_multi_role.run_folder import Record, RunEvent, event_of
from codex_multi_role.run_folder.events import FilesApplied, RunStarted, TurnEnded, UnknownEvent, Warning
from tests.support.event_samples import EVENT_FIELDS

AT = "2026-01-31T10:15:00.000+00:00"
KINDS = pytest.mark.parametrize("kind", EVENT_FIELDS, ids=lambda kind: kind.__name__)


def record_of(kind: type[RunEvent]) -> Record:
    record: Record = json.loads(json.dumps(kind(**EVENT_FIELDS[kind], at=AT).as_record()))
    return record


def damaged(name: str, value: object) -> Record:
    return {**record_of(TurnEnded), name: value}


@KINDS
def test_event_is_read_as_it_was_written(kind: type[RunEvent]) -> None:
    written = kind(**EVENT_FIELDS[kind], at=AT)
    assert event_of(record_of(kind)) == written
    assert event_of(record_of(kind)).as_record() == written.as_record()


def test_every_class_of_events_is_read() -> None:
    assert set(EVENT_FIELDS) == set(RunEvent.__subclasses__()) - {UnknownEvent}


@KINDS
def test_record_without_optional_fields_gets_defaults(kind: type[RunEvent]) -> None:
    optional = [each for each in fields(kind) if (each.default, each.default_factory) != (MISSING, MISSING)]
    names = {each.name for each in optional} - {"at"}
    required = {name: value for name, value in EVENT_FIELDS[kind].items() if name not in names}
    record = {name: value for name, value in record_of(kind).items() if name not in names}
    assert event_of(record) == kind(**required, at=AT)


def test_field_of_newer_version_is_ignored() -> None:
    assert event_of({**record_of(Warning), "severity": 3}) == Warning("look here", at=AT)


@KINDS
def test_record_without_required_field_is_unknown(kind: type[RunEvent]) -> None:
    required = [each.name for each in fields(kind) if (each.default, each.default_factory) == (MISSING, MISSING)]
    for missing in required:
        record = {name: value for name, value in record_of(kind).items() if name != missing}
        assert event_of(record) == UnknownEvent(at=AT)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "not_invented_yet", "at": AT},
        {"type": "unknown_event", "at": AT},
        {"type": ["warning"], "at": AT},
        {"at": AT},
        damaged("seconds", "1.5"),
        damaged("reason", None),
        damaged("turn", 1.0),
        {**record_of(FilesApplied), "paths": ["a.py", 7]},
        {**record_of(FilesApplied), "paths": "a.py"},
        {**record_of(RunStarted), "limits": {"turns": "many"}},
        {**record_of(RunStarted), "playbook": 7},
    ],
)
def test_damaged_or_newer_record_is_unknown_event(record: Record) -> None:
    assert event_of(record) == UnknownEvent(at=AT)


@pytest.mark.parametrize("at", [None, 7, "", "yesterday", ["2026"]])
def test_event_without_readable_time_is_unknown(at: Any) -> None:
    assert event_of({**record_of(Warning), "at": at}) == UnknownEvent()
    assert event_of({}) == UnknownEvent()


def test_whole_number_is_read_as_seconds() -> None:
    assert event_of(damaged("seconds", 2)) == TurnEnded(**{**EVENT_FIELDS[TurnEnded], "seconds": 2}, at=AT)


def test_line_without_one_whole_object_is_skipped() -> None:
    damaged_lines = [b"[]\n", b"null\n", b"\n", b"{} {}\n", b'{"type": "warn', b'{"type": "\xc3"}\n', b"[" * 100_000]
    damaged_lines.append(b'{"seconds": NaN}')
    assert list(read_records([*damaged_lines, b' {"turn": 1}\r\n'])) == [{"turn": 1}]
