"""The log of a run's events: written first and shown afterwards, and read whatever version wrote it."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.run_folder import EventLog, Record, RunEvent, event_of, read_events, skim_events
from codex_multi_role.run_folder.events import FilesApplied, RoleActivity, RunStarted, TurnEnded, UnknownEvent, Warning
from tests.support.event_samples import EVENT_FIELDS
from tests.support.processes import largest_file, wait_until
from tests.support.teams import read_lines

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")

NOTHING_SECRET = Redactor({})
AT = "2026-01-31T10:15:00.000+00:00"
KINDS = pytest.mark.parametrize("kind", EVENT_FIELDS, ids=lambda kind: kind.__name__)


@KINDS
def test_record_is_type_time_and_the_events_fields(kind: type[RunEvent]) -> None:
    record = kind(**EVENT_FIELDS[kind]).as_record()
    assert list(record)[: 2 + len(EVENT_FIELDS[kind])] == ["type", "at", *EVENT_FIELDS[kind]]
    assert record["type"] == re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    assert MOMENT.fullmatch(record["at"])
    assert EVENT_FIELDS[kind].items() <= record.items()
    assert json.loads(json.dumps(record)) == record


def test_all_threads_share_one_order_and_subscribers_see_it(tmp_path: Path) -> None:
    log, seen = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET), list[Record]()
    log.subscribe(seen.append)
    starting = threading.Barrier(8)

    def publish(role: str) -> None:
        starting.wait(30)
        for number in range(200):
            log.publish(RoleActivity(role, number, "x" * 500))

    threads = [threading.Thread(target=publish, args=(f"role{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    log.close()
    written = read_lines(tmp_path / "events.jsonl")
    assert written == seen
    assert [record["at"] for record in written] == sorted(record["at"] for record in written)
    for role in {record["role"] for record in written}:
        assert [record["turn"] for record in written if record["role"] == role] == list(range(200))


def publish_while_another_is_written(log: EventLog, path: Path) -> tuple[list[list[str]], list[Future[None]]]:
    """What was kept together when three threads published while a fourth was writing, and how their calls ended."""
    together, began, over = list[list[str]](), threading.Event(), threading.Event()

    def keep(records: Sequence[Record]) -> None:
        together.append([record["message"] for record in records])
        began.set()
        assert over.wait(30)

    log.keep(keep)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(log.publish, Warning("first"))]
        assert began.wait(30)
        calls += [pool.submit(log.publish, Warning(f"later {number}")) for number in range(3)]
        wait_until(lambda: len(log._waiting) == 3, "three that wait")
        over.set()
    log.close()
    assert [record["message"] for record in read_lines(path)] == [message for each in together for message in each]
    return together, calls


def test_events_that_wait_are_written_together(tmp_path: Path) -> None:
    log, seen = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET), list[str]()
    log.subscribe(lambda record: seen.append(record["message"]))
    together, calls = publish_while_another_is_written(log, tmp_path / "events.jsonl")
    assert [sorted(each) for each in together] == [["first"], ["later 0", "later 1", "later 2"]]
    assert seen == [message for each in together for message in each]
    assert [call.result() for call in calls] == [None] * 4


def test_each_thread_gets_the_error_of_its_own_event(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET)

    def show(record: Record) -> None:
        if record["message"] == "later 1":
            raise ValueError("cannot be drawn")

    log.subscribe(show)
    _, calls = publish_while_another_is_written(log, tmp_path / "events.jsonl")
    assert [str(call.exception() or "") for call in calls] == ["", "", "cannot be drawn", ""]


def test_event_whose_writer_was_interrupted_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread took it together with its own, and Ctrl-C ended that thread's work before it wrote them."""
    log = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET)
    monkeypatch.setattr(log, "_waiting", deque[object](maxlen=0))
    log.publish(Warning("first"))
    log.close()
    assert [record["message"] for record in read_lines(tmp_path / "events.jsonl")] == ["first"]


def test_event_is_on_disk_before_it_is_shown(tmp_path: Path) -> None:
    log, on_disk = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET), list[Record]()
    log.subscribe(lambda _: on_disk.extend(read_lines(tmp_path / "events.jsonl")))
    log.publish(Warning("first"))
    log.close()
    assert [record["message"] for record in on_disk] == ["first"]


def test_resumed_run_appends_even_after_truncated_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for message in ("first", "second"):
        log = EventLog(path, NOTHING_SECRET)
        log.publish(Warning(message))
        log.close()
    with path.open("ab") as file:
        file.write('{"type":"warning","message":"ü'.encode()[:-1])
    log = EventLog(path, NOTHING_SECRET)
    log.publish(Warning("third"))
    log.close()
    assert path.read_bytes().splitlines()[2] == b'{"type":"warning","message":"\xc3'
    assert [event.message for event in read_events(path) if isinstance(event, Warning)] == ["first", "second", "third"]


def test_invalid_unicode_and_events_after_close_do_not_end_run(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET)
    log.publish(Warning("half a character: \ud800, and two\nlines"))
    log.close()
    log.publish(Warning("late"))
    (only,) = read_lines(tmp_path / "events.jsonl")
    assert only["message"] == "half a character: ?, and two\nlines"


def test_full_disk_is_named_and_unwritten_event_is_not_shown(tmp_path: Path) -> None:
    log, seen = EventLog(tmp_path / "events.jsonl", NOTHING_SECRET), list[Record]()
    log.subscribe(seen.append)
    log.publish(Warning("fits"))
    with largest_file(200), pytest.raises(StorageError, match=r"cannot write .*events\.jsonl: File too large"):
        log.publish(Warning("x" * 1000))
    assert [record["message"] for record in seen] == ["fits"]
    log.publish(Warning("after"))
    log.close()
    assert [record["message"] for record in read_lines(tmp_path / "events.jsonl")] == ["fits", "x" * 1000, "after"]


def test_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*events\.jsonl: Is a directory"):
        EventLog(tmp_path / "events.jsonl", NOTHING_SECRET)


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


@KINDS
def test_record_without_optional_fields_gets_defaults(kind: type[RunEvent]) -> None:
    optional = [each for each in fields(kind) if (each.default, each.default_factory) != (MISSING, MISSING)]
    names = {each.name for each in optional} - {"at"}
    required = {name: value for name, value in EVENT_FIELDS[kind].items() if name not in names}
    record = {name: value for name, value in record_of(kind).items() if name not in names}
    assert event_of(record) == kind(**required, at=AT)


def test_field_of_newer_version_is_ignored() -> None:
    assert event_of({**record_of(Warning), "severity": 3}) == Warning("a", at=AT)


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
        {"type": 7, "at": AT},
        {"type": "added.not_installed", "at": AT},
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


def test_skimming_yields_wanted_events_with_the_one_before(tmp_path: Path) -> None:
    """The last event before a wanted one tells when it happened; lines that are not ours are read as they are."""
    path = tmp_path / "events.jsonl"
    told = [RoleActivity("one", 1, f"command {number}", at=AT) for number in range(4)]
    warning = Warning("look here", at=AT)
    lines = [json.dumps(each.as_record()) for each in (*told[:3], warning, told[3])]
    strange = [f'{{"type": "not_invented_yet", "at": "{AT}"}}', '{"at": "x", "type": "role_activity"}']
    path.write_text("\n".join([*lines, *strange, lines[0], lines[0][:40]]))
    assert list(skim_events(path, {Warning})) == [told[2], warning, UnknownEvent(at=AT), UnknownEvent(), told[0]]
    assert list(skim_events(tmp_path / "missing", {Warning})) == []
