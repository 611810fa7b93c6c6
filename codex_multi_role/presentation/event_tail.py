"""Reads a run's events while some process writes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from codex_multi_role.errors import RunStatus
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.outcome import is_open
from codex_multi_role.presentation.recorded import RecordedRun, status_now
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.run_folder import Record, RunEvent, RunFolder, event_of
from codex_multi_role.run_folder.folder import SHARED
from codex_multi_role.run_folder.owner import is_alive

LOOK_SECONDS = 0.1
LONGEST_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line; a longer one is read in pieces that mean nothing."""


class EventReader:
    """Returns what was added to an ``events.jsonl`` since the last call; an incomplete line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._stopped_early = False

    @property
    def behind(self) -> bool:
        """Whether `lines` stopped before the end of the file."""
        with suppress(OSError):
            return self._stopped_early and self._path.stat().st_size > self._offset
        return False

    def lines(self, most: int | None = None) -> Iterator[bytes]:
        """Yield the new lines, at most ``most`` of them."""
        self._stopped_early = False
        try:
            if self._path.stat().st_size <= self._offset:
                return
            file = self._path.open("rb")
        except FileNotFoundError:  # the run has no events yet
            return
        with file:
            file.seek(self._offset)
            for _ in count() if most is None else range(most):
                line = file.readline(LONGEST_LINE)  # waits: for nothing: a file
                if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                    return
                self._offset += len(line)
                yield line
        self._stopped_early = True

    def read(self) -> Iterator[RunEvent]:
        """Yield the new events; skips lines that a kill cut short, as `read_events` does."""
        return map(event_of, read_records(self.lines()))


def follow(folder: RunFolder, is_at_work: Callable[[RunFolder], bool] = is_alive) -> Iterator[Record]:
    """Yield the record of every event of the run, also those to come, until nobody works on it any more."""
    reader = EventReader(folder.events_path)
    alive = True
    while alive:  # waits: for events, ended with the process that works on the run
        alive = is_at_work(folder)  # checked first: a process writes its events before it releases the run
        yield from read_records(reader.lines())
        if alive:
            time.sleep(LOOK_SECONDS)


@dataclass(frozen=True)
class RunNow:
    """The state of a run at one moment: its ``run.json``, its status, and its course if it runs here."""

    folder: RunFolder
    record: dict[str, Any]
    status: str
    course: Course | None

    @property
    def run_id(self) -> str:
        return self.folder.run_id

    @property
    def alive(self) -> bool:
        return is_open(self.status)


class RunsReader:
    """Looks at all runs that ``list_runs`` returns again and again, reading only what is new."""

    def __init__(self, list_runs: Callable[[], list[RecordedRun]]) -> None:
        self._list_runs = list_runs
        self._live: dict[str, tuple[EventReader, Course]] = {}

    def look(self) -> list[RunNow]:
        """Return the current state of the runs, oldest first."""
        return [self._at(run.folder, run.record) for run in self._list_runs()]

    def _at(self, folder: RunFolder, record: dict[str, Any]) -> RunNow:
        status = status_now(folder, record)
        if status != RunStatus.RUNNING or SHARED in record:
            self._live.pop(folder.run_id, None)
            return RunNow(folder, record, status, None)
        reader, course = self._live.setdefault(folder.run_id, (EventReader(folder.events_path), Course()))
        for event in reader.read():
            course.apply(event)
        return RunNow(folder, record, status, course)
