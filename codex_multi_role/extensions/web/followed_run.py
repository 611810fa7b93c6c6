"""One run as its page shows it, updated as its ``events.jsonl`` grows."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codex_multi_role.errors import RunNotFound
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.extensions.report.rendering import template
from codex_multi_role.extensions.web.forms import TEMPLATES
from codex_multi_role.extensions.web.listing import shown_status
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.outcome import next_from_record, raised_limits
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.presentation.recorded import open_questions, read_record, status_now
from codex_multi_role.presentation.result import ShownResult, result_of
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.run_folder import Question, RunFolder, event_of
from codex_multi_role.run_folder.folder import SHARED, has_reached_end
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_folder.states import OVER

KEPT_LINES = 1000
EVENTS_A_LOOK = 5000
FACTS_SECONDS = 1.0
"""Maximum age of the run's record, questions and liveness while it records no events."""
PARTS = ("questions", "overview", "controls")


@dataclass(frozen=True)
class Facts:
    """What the events do not contain: the files beside them, and whether a process works on the run."""

    record: dict[str, Any]
    status: str
    alive: bool
    questions: list[Question]
    report: bool
    result: ShownResult | None
    next_command: str
    problem: str = ""
    """What keeps all this from being up to date."""

    @property
    def is_shared(self) -> bool:
        """Whether workers execute the run."""
        return SHARED in self.record

    @property
    def is_queued(self) -> bool:
        return self.record.get("status") == QUEUED

    @property
    def is_resumable(self) -> bool:
        """Whether resuming would do anything."""
        ended_for_good = has_reached_end(self.record) and not self.raised_limits
        return not self.alive and not self.is_queued and not ended_for_good and "options" in self.record

    @property
    def raised_limits(self) -> dict[str, str]:
        return raised_limits(self.record)


@dataclass(frozen=True)
class PagePart:
    """A part of the page; ``version`` changes with its content."""

    name: str
    html: str
    version: str


@dataclass(frozen=True)
class Snapshot:
    """The page after ``number`` events. ``lines``: the latest of the log, each with the number of its event."""

    number: int = 0
    lines: tuple[tuple[int, str], ...] = ()
    dropped: int = 0
    parts: tuple[PagePart, ...] = ()
    facts: Facts | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """The status in the facts; empty before they are read."""
        return self.facts.status if self.facts is not None else ""

    def lines_after(self, number: int) -> list[str]:
        return [line for of_event, line in self.lines if of_event > number]


class FollowedRun:
    """Follows one run. Only one thread may `look` at a time; threads may share what it returns.

    ``refresh`` brings ``folder`` up to date if it is a copy, and returns what keeps it from being so.
    """

    def __init__(self, folder: RunFolder, form_secret: str, refresh: Callable[[RunFolder], str] = lambda _: "") -> None:
        self._folder = folder
        self._refresh = refresh
        self._refreshed_at = -FACTS_SECONDS
        self._problem = ""
        self._form_secret = form_secret
        self._plain = PlainLines(Course())
        self._lines: deque[tuple[int, str]] = deque(maxlen=KEPT_LINES)
        self._line_count = 0
        self._number = 0
        self._reader = EventReader(folder.events_path)
        self._facts: Facts | None = None
        self._facts_at = 0.0
        self.snapshot = Snapshot()

    def look(self) -> bool:
        """Read on; returns whether `snapshot` changed. Raises `RunNotFound` if the run no longer exists."""
        if time.monotonic() - self._refreshed_at >= FACTS_SECONDS:
            self._problem = self._refresh(self._folder)
            self._refreshed_at = time.monotonic()
        before = self._number
        for line in self._reader.lines(EVENTS_A_LOOK):
            self._number += 1
            self._apply_line(line)
        if self._number == before and time.monotonic() - self._facts_at < FACTS_SECONDS:
            return False
        self._facts = self._read_facts()
        self._facts_at = time.monotonic()
        latest = self._take_snapshot(self._facts)
        changed = (latest.number, latest.parts) != (self.snapshot.number, self.snapshot.parts)
        self.snapshot = latest
        return changed

    @property
    def behind(self) -> bool:
        """Whether there is more to read at once."""
        return self._reader.behind

    def _apply_line(self, line: bytes) -> None:
        for record in read_records([line]):
            event = event_of(record)
            lines = self._plain.of(event)
            self._line_count += len(lines)
            self._lines.extend((self._number, each) for each in lines)

    def _read_facts(self) -> Facts:
        if not self._folder.path.is_dir():
            raise RunNotFound(f"the folder {self._folder.path} no longer exists")
        record = read_record(self._folder)
        status = status_now(self._folder, record)
        alive = is_alive(self._folder)
        questions = open_questions(self._folder, record)
        return Facts(
            record=record,
            status=shown_status(status, questions),
            alive=alive,
            questions=questions,
            report=self._folder.report_path.is_file() or (SHARED in record and has_reached_end(record)),
            result=result_of(self._folder, record),
            problem=self._problem,
            next_command="" if alive else next_from_record(self._folder, record, status),
        )

    def _take_snapshot(self, facts: Facts) -> Snapshot:
        tasks = [piece.states() for piece in self._plain.course.pieces.values() if piece.is_task]
        values = {
            "run_id": self._folder.run_id,
            "facts": facts,
            "record": facts.record,
            "course": self._plain.course,
            "tasks": tasks,
            "open_tasks": [each for each in tasks if each["state"] not in OVER] if facts.alive else [],
            "form_secret": self._form_secret,
        }
        pages = {name: template(f"{name}.html", TEMPLATES).render(**values) for name in PARTS}
        versions = {name: hashlib.sha256(html.encode()).hexdigest()[:16] for name, html in pages.items()}
        return Snapshot(
            number=self._number,
            lines=tuple(self._lines),
            dropped=self._line_count - len(self._lines),
            parts=tuple(PagePart(name, html, versions[name]) for name, html in pages.items()),
            facts=facts,
        )
