"""The typed events of a run, and the log that is their only home.

The live view, ``--json``, ``watch``, the report and telemetry read these and nothing else, so that a run looks the
same while it lives and after. ``as_record`` gives the JSON object of one line: ``type`` and ``at`` first.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codex_multi_role.redaction import Redactor
from codex_multi_role.run_folder.atomic import storage_errors

Record = dict[str, Any]
Subscriber = Callable[[Record], None]


def now() -> str:
    """The present moment, ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class RunEvent:
    """Base of all run events; a subclass's name in snake case is the record's ``type``."""

    def as_record(self) -> Record:
        name = type(self).__name__
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
        return {"type": snake, "at": now(), **asdict(self)}


@dataclass(frozen=True)
class RunStarted(RunEvent):
    run_id: str
    goal: str
    flow: str
    cycles: int
    roles: list[str]
    workspace: str
    folder: str
    playbook: str | None
    resumed: bool


@dataclass(frozen=True)
class RoleStarted(RunEvent):
    """A Codex process is ready for its first turn."""

    role: str
    pid: int
    thread_id: str
    seconds: float
    resumed: bool


@dataclass(frozen=True)
class StepStarted(RunEvent):
    """A visit of a step begins.

    ``journal_step`` is its place in the journal, 0 in a called flow; ``workspace`` the workspace's state among the
    run's snapshots, empty where nothing of the run can change it.
    """

    step: str
    visit: int
    cycle: int
    journal_step: int = 0
    workspace: str = ""


@dataclass(frozen=True)
class TurnStarted(RunEvent):
    role: str
    turn: int
    cycle: int
    attempt: int
    repair_of: int | None


@dataclass(frozen=True)
class RoleActivity(RunEvent):
    """What a role is doing inside its turn, one line."""

    role: str
    turn: int
    activity: str


@dataclass(frozen=True)
class Approval(RunEvent):
    role: str
    turn: int
    method: str
    decision: str
    detail: str


@dataclass(frozen=True)
class ToolCalled(RunEvent):
    """A role called a tool of the controller; arguments and answer are in the turn's ``tool_calls.jsonl``."""

    role: str
    turn: int
    tool: str
    success: bool
    seconds: float


@dataclass(frozen=True)
class TurnEnded(RunEvent):
    """``status``, ``outcome`` (one word) and ``reason`` (a sentence) as in ``turn.json``."""

    role: str
    turn: int
    status: str
    outcome: str
    reason: str
    input_tokens: int
    output_tokens: int
    seconds: float
    summary: str


@dataclass(frozen=True)
class ReplyRepaired(RunEvent):
    """A damaged JSON object was mended without asking the model again."""

    role: str
    turn: int
    how: str = "local"


@dataclass(frozen=True)
class FilesApplied(RunEvent):
    role: str
    turn: int
    written: int
    skipped: int
    paths: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ProtectedRestored(RunEvent):
    """Files that ``protect`` names were put back after a turn, or before or after tests (``turn`` 0: a check's)."""

    role: str
    turn: int
    paths: list[str]


@dataclass(frozen=True)
class CopyMerged(RunEvent):
    """What a role did in a copy of the workspace came back. ``status``: merged, unchanged or conflicts."""

    copy: str
    status: str
    paths: list[str]
    conflicts: list[dict[str, str]]


@dataclass(frozen=True)
class TestsStarted(RunEvent):
    __test__ = False
    number: int
    role: str
    turn: int


@dataclass(frozen=True)
class TestsEnded(RunEvent):
    __test__ = False
    number: int
    status: str
    passed: int
    failed: int
    errors: int
    skipped: int
    seconds: float


@dataclass(frozen=True)
class DoneIgnored(RunEvent):
    """A role that may not finish said DONE."""

    role: str
    turn: int


@dataclass(frozen=True)
class RoleRestarted(RunEvent):
    role: str
    reason: str


@dataclass(frozen=True)
class RoleSkipped(RunEvent):
    """An optional role failed; the run goes on without its handoff."""

    role: str
    reason: str


@dataclass(frozen=True)
class ReviewAsked(RunEvent):
    """A person is asked; the question is in ``reviews/<key>.json``."""

    key: str
    question: str


@dataclass(frozen=True)
class ReviewAnswered(RunEvent):
    """``by``: a user's name, ``--yes`` or ``time limit``."""

    key: str
    approved: bool
    comment: str
    by: str


@dataclass(frozen=True)
class Warning(RunEvent):
    message: str


@dataclass(frozen=True)
class RunEnded(RunEvent):
    status: str
    outcome: str
    reason: str
    exit_code: int
    totals: dict[str, float]
    folder: str


def read_events(path: Path) -> Iterator[Record]:
    """The events of ``events.jsonl`` in order; a line that a kill cut short is passed over."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def _ends_within_a_line(path: Path) -> bool:
    """Whether a kill or a full disk cut the last line short; what comes next must not be lost with it."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


class EventLog:
    """Appends events to ``events.jsonl`` and then shows them to the subscribers, in one order for all threads.

    Both through ``redact``: what is shown is what is kept.
    """

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._path = path
        self._redact = redact
        self._lock = threading.Lock()
        self._subscribers: list[Subscriber] = []
        with storage_errors(path):
            cut_short = _ends_within_a_line(path)
            self._file = path.open("a", encoding="utf-8", errors="replace")
            if cut_short:
                self._file.write("\n")

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with the record of every later event, on the publishing thread."""
        self._subscribers.append(subscriber)

    def publish(self, event: RunEvent) -> None:
        """Write the event, then show it. Raises `StorageError`."""
        with self._lock:
            if self._file.closed:
                return  # the run has ended; whoever is late has no one left to tell
            record = self._redact.within(event.as_record())  # here, not above: the times are in order too
            with storage_errors(self._path):
                self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
                self._file.flush()
            for subscriber in self._subscribers:
                subscriber(record)

    def close(self) -> None:
        with storage_errors(self._path):
            self._file.close()
