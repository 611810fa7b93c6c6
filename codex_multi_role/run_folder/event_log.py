"""The log of a run's events, which is their only storage: an event is written first and shown afterwards.

Only this module decides about records of other versions.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from codex_multi_role.errors import UsageError
from codex_multi_role.host.atomic import storage_errors
from codex_multi_role.host.redaction import Redactor
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.reading.registry import Registry
from codex_multi_role.run_folder import events
from codex_multi_role.run_folder.events import ADDED, AddedEvent, Record, RunEvent, TurnEvent, UnknownEvent, Warning

MAX_WARNINGS = 100
"""Maximum number of distinct Codex warnings that a run shows."""

LONGEST_TEXT = 20_000
"""Maximum characters of a text in an event that is read; the log has all of it."""
TYPE_FIRST = b'{"type": "'
"""How every line begins that `EventLog` writes."""

Subscriber = Callable[[Record], None]
Keeper = Callable[[Sequence[Record]], None]
_BASES = (RunEvent, AddedEvent, TurnEvent, UnknownEvent)
_EVENTS = (each for each in vars(events).values() if isinstance(each, type) and issubclass(each, RunEvent))
TYPES = {each.type: each for each in _EVENTS if each not in _BASES}
OF_EXTENSIONS: Registry[type[AddedEvent]] = Registry("event", "codex_multi_role.events", {})


def read_events(path: Path) -> Iterator[RunEvent]:
    """The events of ``events.jsonl`` in order; a line that a kill truncated is skipped."""
    return map(event_of, read_event_records(path))


def skim_events(path: Path, wanted: Collection[type[RunEvent]]) -> Iterator[RunEvent]:
    """The events of the classes ``wanted``, and of those between two of them the last, because it tells the time.

    A log is mostly what roles did within their turns, and parsing a line takes much longer than passing over it.
    """
    return map(event_of, read_records(_skimmed(path, wanted)))


def _skimmed(path: Path, wanted: Collection[type[RunEvent]]) -> Iterator[bytes]:
    ours = (f'{each.type}"' for each in wanted if each is not AddedEvent)
    known = tuple(TYPE_FIRST + each.encode() for each in (*ours, *([ADDED] if AddedEvent in wanted else ())))
    if not path.exists():
        return
    last = b""
    with path.open("rb") as lines:
        for line in lines:
            if line.startswith(TYPE_FIRST) and not line.startswith(known):
                last = line if line.endswith(b"}\n") else last  # not one that a kill truncated
                continue
            yield from (last, line) if last else (line,)
            last = b""
    if last:
        yield last


def read_event_records(path: Path) -> Iterator[Record]:
    """The same events as they were written, for copies."""
    if path.exists():
        with path.open("rb") as lines:
            yield from read_records(lines)


def _ends_mid_line(path: Path) -> bool:
    """Whether a kill or a full disk truncated the last line; the next event must not be lost with it."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


@dataclass(eq=False)
class _Waiting:
    """Events that a thread publishes together; ``published`` once they were shown, with the error of that if any."""

    events: Sequence[RunEvent]
    published: Future[None] = field(default_factory=Future)


class EventLog:
    """Appends events to ``events.jsonl`` and then shows them to the subscribers, in the same order for all threads.

    ``redact`` applies to both: what is shown is what is stored. Events that threads publish while another is writing
    are written together: in a fan-out, many items change their state at the same time.
    """

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._path = path
        self._redact = redact
        self._lock = threading.Lock()  # waits: for a few lines to a file, and to whoever draws them
        self._waiting_lock = threading.Lock()  # waits: for one attribute
        self._waiting: list[_Waiting] = []
        self._keepers: list[Keeper] = []
        self._subscribers: list[Subscriber] = []
        self._warned: set[str] = set()
        with storage_errors(path):
            cut_short = _ends_mid_line(path)
            self._file = path.open("a", encoding="utf-8", errors="replace")
            if cut_short:
                self._file.write("\n")

    def keep(self, keeper: Keeper) -> None:
        """Call ``keeper`` with the records of all later events, some at a time, before anyone is shown them."""
        self._keepers.append(keeper)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with the record of every later event, on a thread that publishes one."""
        self._subscribers.append(subscriber)

    def publish(self, *events: RunEvent) -> None:
        """Write the events, then show them. Raises `StorageError`."""
        mine = _Waiting(events)
        with self._waiting_lock:
            self._waiting.append(mine)
        with self._lock:
            if not mine.published.done():
                self._publish(self._taken(mine))
        mine.published.result()  # waits: for nothing: it is done

    def _taken(self, mine: _Waiting) -> list[_Waiting]:
        """All that wait, and ``mine`` also if a signal ended the thread that had taken it."""
        with self._waiting_lock:
            together, self._waiting = self._waiting, []
        return together if mine in together else [*together, mine]

    def _publish(self, together: Sequence[_Waiting]) -> None:
        """Write and show the events. Each thread gets the error of the writing, or that of showing its own events."""
        try:
            records = [self._records(each.events) for each in together]
            self._write([record for own in records for record in own])
        except BaseException as error:
            for each in together:
                each.published.set_exception(error)
            return
        for each, own in zip(together, records, strict=True):
            try:
                self._show(own)
            except BaseException as error:
                each.published.set_exception(error)
            else:
                each.published.set_result(None)

    def _records(self, events: Sequence[RunEvent]) -> list[Record]:
        if self._file.closed:
            return []  # the run has ended, so nobody reads late events
        return [self._redact.within(event.as_record()) for event in events]  # now, so that the times are in order too

    def _write(self, records: Sequence[Record]) -> None:
        if records:
            with storage_errors(self._path):
                self._file.write("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
                self._file.flush()
            for keeper in self._keepers:
                keeper(records)

    def _show(self, records: Sequence[Record]) -> None:
        for record in records:
            for subscriber in self._subscribers:
                subscriber(record)

    def warn_once(self, role: str, text: str) -> None:
        """Publish a warning, unless this run has already shown one with that text, for whichever role."""
        text = self._redact(text)
        with self._lock:
            if not self._warned:
                earlier = (event for event in skim_events(self._path, {Warning}) if isinstance(event, Warning))
                self._warned = {event.message.partition(": ")[2] for event in earlier}
            if text in self._warned or len(self._warned) >= MAX_WARNINGS:
                return
            self._warned.add(text)
        self.publish(Warning(f"{role}: {text}"))

    def close(self) -> None:
        with storage_errors(self._path):
            self._file.close()


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
        values[name] = _bounded(values[name])
    return event


def _bounded(value: object) -> object:
    """A text, and texts in a list or by name, as far as a view can need them: a model's line may have megabytes."""
    match value:
        case str():
            return value[:LONGEST_TEXT]
        case list() if any(isinstance(each, str) and len(each) > LONGEST_TEXT for each in value):
            return [_bounded(each) for each in value]
        case dict() if any(isinstance(each, str) and len(each) > LONGEST_TEXT for each in chain(*value.items())):
            return {name[:LONGEST_TEXT]: _bounded(each) for name, each in value.items()}
    return value


@cache
def _shape(name: str) -> tuple[type[RunEvent], Record, list[tuple[str, Any, Any]]]:
    """The class of a type, its defaults, and its fields with their `_split` types. Raises `KeyError`."""
    event_type = TYPES[name] if name in TYPES else _of_extension(str(name))
    own = [each for each in fields(event_type) if each.name != "at"]
    defaults = {each.name: each.default for each in own if each.default is not MISSING}
    made = {each.name: each.default_factory() for each in own if each.default_factory is not MISSING}
    hints = get_type_hints(event_type)
    return event_type, defaults | made, [(each.name, *_split(hints[each.name])) for each in own]


def _of_extension(name: str) -> type[RunEvent]:
    if not name.startswith(ADDED):
        raise KeyError(name)
    try:
        return OF_EXTENSIONS.find(name.removeprefix(ADDED))
    except UsageError as error:
        raise KeyError(name) from error


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
