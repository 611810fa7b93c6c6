"""One run as its page shows it, updated as its ``events.jsonl`` grows."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from codex_multi_role.errors import RunNotFound
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.extensions.pages.report.entries import Entries, ReportEntry, turn_id
from codex_multi_role.extensions.pages.report.flow_picture import KnownFlows
from codex_multi_role.extensions.pages.report.page import facts_of, figures_of
from codex_multi_role.extensions.pages.report.parts import LONGEST
from codex_multi_role.extensions.pages.report.rendering import template
from codex_multi_role.extensions.pages.report.run_tree import Leaf, RunTree
from codex_multi_role.extensions.pages.report.timeline import timeline
from codex_multi_role.extensions.pages.serve.forms import TEMPLATES
from codex_multi_role.extensions.pages.serve.listing import shown_status
from codex_multi_role.extensions.pages.serve.log_lines import LogLine, lines_of
from codex_multi_role.presentation.course import Course
from codex_multi_role.presentation.event_tail import EventReader
from codex_multi_role.presentation.outcome import (
    BAD,
    WARN,
    next_from_record,
    raised_limits,
)
from codex_multi_role.presentation.pieces import WorkPiece
from codex_multi_role.presentation.plain import PlainLines
from codex_multi_role.presentation.recorded import open_questions, read_record, status_now
from codex_multi_role.presentation.result import ShownResult, result_of
from codex_multi_role.reading.json_files import read_records
from codex_multi_role.run_folder import Question, RunFolder, event_of
from codex_multi_role.run_folder.folder import SHARED, has_reached_end
from codex_multi_role.run_folder.owner import is_alive
from codex_multi_role.run_folder.states import OVER

KEPT_LINES = 1000
FEW_TURNS, TURNS_DRAWN_A_SECOND = 100, 1000
"""A run with many turns is not drawn again for each event: after 1,000 turns at most every second."""
SEARCH_SECONDS, FOUND_AT_ONCE = 0.5, 100
"""What one answer to a search takes and has at most; the next one continues."""
KINDS = {"turn": ("turn-",), "check": ("tests-", "check-"), "question": ("question-",)}
Excerpts = list[tuple[Leaf, list[str]]]
EVENTS_A_LOOK = 5000
FACTS_SECONDS = 1.0
"""Maximum age of the run's record, questions and liveness while it records no events."""
PARTS = ("now", "controls", "overview")
DRAWN = ("path", "tree")
"""The parts that show every turn."""


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

    @cached_property
    def as_json(self) -> str:
        """Encoded once for all viewers: some parts are long."""
        return json.dumps({"name": self.name, "html": self.html, "version": self.version})


@dataclass(frozen=True)
class Snapshot:
    """The page after ``number`` events. ``lines``: the latest of the log."""

    number: int = 0
    lines: tuple[LogLine, ...] = ()
    dropped: int = 0
    parts: tuple[PagePart, ...] = ()
    facts: Facts | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """The status in the facts; empty before they are read."""
        return self.facts.status if self.facts is not None else ""

    @property
    def named(self) -> dict[str, PagePart]:
        return {part.name: part for part in self.parts}

    def lines_after(self, number: int) -> list[LogLine]:
        return [line for line in self.lines if line.number > number]


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
        self._lines: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._line_count = 0
        self._number = 0
        self._reader = EventReader(folder.events_path)
        self._facts: Facts | None = None
        self._facts_at = 0.0
        self._flows = KnownFlows()
        self._flows_of = ""
        self._drawn: dict[str, str] = {}
        self._drawn_of: object = None
        self._drawn_at = 0.0
        self._told: object = None
        self._entries: Entries | None = None
        self._course_lock = threading.Lock()  # waits: for one look or one panel, ended by it
        self.snapshot = Snapshot()
        self.behind = False
        """Whether there is more to read at once than `snapshot` has."""

    def look(self) -> bool:
        """Read on; returns whether `snapshot` changed. Raises `RunNotFound` if the run no longer exists."""
        with self._course_lock:
            return self._look()

    def entry(self, wanted: str) -> ReportEntry | None:
        """What there is of the turn, test run, check or question with this id; of the latest turn, if it is empty.

        Any thread may ask, also for what follows.
        """
        with self._course_lock:
            latest = next(reversed(self._plain.course.turns), None)
            return self._now.find(wanted or (turn_id(*latest) if latest else ""))

    def tree(self, *shown: str) -> RunTree:
        """What happened, as it is now; ``shown`` as in `RunTree`."""
        with self._course_lock:
            return self._tree(*shown)

    def search(self, wanted: str, kind: str = "", after: int = 0) -> tuple[Excerpts, int | None, int]:
        """The entries in which a text occurs, from a place on; where the search continues; of how many.

        ``kind``: of `KINDS`, or "problem".
        """
        with self._course_lock:
            parts, tree, excerpt = self._now.parts, self._tree(), self._now.excerpt
        pattern, end = re.compile(re.escape(wanted), re.IGNORECASE), time.monotonic() + SEARCH_SECONDS
        found: Excerpts = []
        for place, part in enumerate(parts[after:], after):
            if len(found) >= FOUND_AT_ONCE or time.monotonic() > end:
                return found, place, len(parts)
            if not part.id.startswith(KINDS.get(kind, ("",))):
                continue
            if kind == "problem" and tree.leaf(part).tone not in (BAD, WARN):
                continue
            shown = excerpt(part, pattern) if wanted else []
            if shown or not wanted:
                found.append((tree.leaf(part), shown))
        return found, None, len(parts)

    @property
    def _now(self) -> Entries:
        if self._entries is None:
            self._entries = Entries(self._folder, self._plain.course, LONGEST, alive=is_alive(self._folder))
        return self._entries

    def _tree(self, *shown: str) -> RunTree:
        return RunTree(self._plain.course, self._now, self._tone, *shown)

    def _tone(self, piece: WorkPiece) -> str:
        return self._plain.course.tone_of(piece, alive=self._facts is None or self._facts.alive)

    def _look(self) -> bool:
        if time.monotonic() - self._refreshed_at >= FACTS_SECONDS:
            self._problem = self._refresh(self._folder)
            self._refreshed_at = time.monotonic()
        before = self._number
        for line in self._reader.lines(EVENTS_A_LOOK):
            self._number += 1
            self._apply_line(line)
        if self._number == before and self._drawn and time.monotonic() - self._facts_at < FACTS_SECONDS:
            self.behind = False
            return False
        self._facts = self._read_facts()
        self._facts_at = time.monotonic()
        told = (self._number, self._facts.alive, [question.key for question in self._facts.questions])
        if told != self._told:
            self._told, self._entries = told, None
        latest = self._take_snapshot(self._facts)
        changed = (latest.number, latest.parts) != (self.snapshot.number, self.snapshot.parts)
        self.snapshot = latest
        self.behind = self._reader.behind
        return changed

    def _apply_line(self, line: bytes) -> None:
        for record in read_records([line]):
            lines = [*lines_of(self._plain, event_of(record), self._number)]
            self._line_count += len(lines)
            self._lines.extend(lines)

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
        course = self._plain.course
        drawn = self._drawings(facts)
        tasks = [piece for piece in course.pieces.values() if piece.is_task and piece.state not in OVER]
        files = [str(file["path"]) for file in facts.record.get("files") or ()] or [*course.files.paths]
        values = {
            "run_id": self._folder.run_id,
            "facts": facts,
            "record": facts.record,
            "course": course,
            "open_tasks": tasks if facts.alive else [],
            "files": files,
            "shown_facts": facts_of(facts.record, course, self._flows.at_most),
            "figures": [*figures_of(_totals(course), len(files), course)],
            "form_secret": self._form_secret,
        }
        pages = {name: template(f"{name}.html", TEMPLATES).render(**values) for name in PARTS} | drawn
        return Snapshot(
            number=self._number,
            lines=tuple(self._lines),
            dropped=self._line_count - len(self._lines),
            parts=tuple(self._part(name, html) for name, html in pages.items()),
            facts=facts,
        )

    def _part(self, name: str, html: str) -> PagePart:
        """The part as it was, if it is the same."""
        known = self.snapshot.named.get(name)
        if known is not None and known.html == html:
            return known
        return PagePart(name, html, hashlib.sha256(html.encode()).hexdigest()[:16])

    def _drawings(self, facts: Facts) -> dict[str, str]:
        """The parts that show every turn, drawn again only if that does not take most of the time."""
        course = self._plain.course
        turns = len(course.turns)
        is_early = turns > FEW_TURNS and time.monotonic() - self._drawn_at < turns / TURNS_DRAWN_A_SECOND
        if self._reader.behind or (self._drawn and (is_early or self._told == self._drawn_of)):
            return self._drawn or dict.fromkeys(DRAWN, "")
        if self._flows_of != course.started.at or self._flows.problem:
            self._flows_of, self._flows = course.started.at, KnownFlows.of_run(self._folder, facts.record, course)
        values = {
            "flows": self._flows,
            "pictures": self._flows.drawn(course, self._tone),
            "timeline": timeline(course, self._now.questions, self._tone),
            "tree": self._tree(),
        }
        self._drawn = {name: template(f"{name}.html", TEMPLATES).render(**values) for name in DRAWN}
        self._drawn_at, self._drawn_of = time.monotonic(), self._told
        return self._drawn


def _totals(course: Course) -> dict[str, Any]:
    """As in ``run.json``, by the events alone: reading all turns of a run that works would take too long."""
    used, repairs = course.used, sum(turn.repair_of is not None for turn in course.turns.values())
    tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    worked = {"seconds": course.work.seconds, **used.cost.as_json()}
    return {"turns": used.turns, "repairs": repairs, **tokens, **worked}
