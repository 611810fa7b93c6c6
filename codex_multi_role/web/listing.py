"""All runs for the first page: the newest first, searched, a page at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from codex_multi_role.presentation.recorded import open_questions, read_record, status_now, totals_now
from codex_multi_role.run_folder import Question, RunFolder

ROWS = 50
WAITING, WORKING, EVERY = "waiting", "running", "all"
UNDECIDED = frozenset({"running", "parked", "interrupted"})
"""Statuses of runs that may have an open question."""


@dataclass(frozen=True)
class RunRow:
    """One run as the list shows it. ``status``: that of now, ``waiting`` where a person is asked something."""

    folder: RunFolder
    record: dict[str, Any]
    status: str
    question: str

    @property
    def run_id(self) -> str:
        return self.folder.run_id

    @cached_property
    def totals(self) -> dict[str, float]:
        """Not before it is shown: of a run without an end they are read from its turns."""
        return totals_now(self.folder, self.record)

    @property
    def turns(self) -> int:
        return int(self.totals.get("turns", 0))

    @property
    def tokens(self) -> int:
        return int(self.totals.get("input_tokens", 0) + self.totals.get("output_tokens", 0))

    def matches(self, words: list[str]) -> bool:
        record = self.record
        told = (self.run_id, self.status, self.question, *(record.get(name) for name in ("goal", "flow", "outcome")))
        text = " ".join(str(each) for each in told if each).lower()
        return all(word in text for word in words)


@dataclass(frozen=True)
class RunPage:
    """A page of the list; ``counts`` by what can be shown (`EVERY`, `WORKING`, `WAITING`)."""

    rows: list[RunRow]
    number: int
    pages: int
    found: int
    counts: dict[str, int]


class RunList:
    """The runs below one folder. What was read of a run stays until its ``run.json`` changes; threads may share it."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}

    def page(self, *, search: str = "", show: str = EVERY, number: int = 1) -> RunPage:
        """The page of that number, or the nearest there is."""
        words = search.lower().split()
        every = [row for row in self._rows() if row.matches(words)]
        shown = {EVERY: every, WORKING: _of(every, WORKING), WAITING: _of(every, WAITING)}
        rows = shown.get(show, every)
        pages = max(1, -(-len(rows) // ROWS))
        number = min(max(1, number), pages)
        counts = {name: len(those) for name, those in shown.items()}
        return RunPage(rows[(number - 1) * ROWS : number * ROWS], number, pages, len(rows), counts)

    def _rows(self) -> list[RunRow]:
        known = dict(self._read())
        self._known = known
        newest = sorted(known, key=lambda run_id: (str(known[run_id][1].get("started_at", "")), run_id), reverse=True)
        return [self._row(run_id, known[run_id][1]) for run_id in newest]

    def _read(self) -> Iterator[tuple[str, tuple[tuple[int, int], dict[str, Any]]]]:
        known = self._known
        for name in _folders(self._runs_dir):
            folder = RunFolder(self._runs_dir / name)
            try:
                stat = folder.record_path.stat()
            except OSError:
                continue  # not a run, or gone meanwhile
            version = (stat.st_mtime_ns, stat.st_size)
            if name in known and known[name][0] == version:
                yield name, known[name]
            else:
                yield name, (version, read_record(folder))

    def _row(self, run_id: str, record: dict[str, Any]) -> RunRow:
        folder = RunFolder(self._runs_dir / run_id)
        status = status_now(folder, record)
        asked = open_questions(folder, record) if status in UNDECIDED else []
        return RunRow(folder, record, shown_status(status, asked), asked[0].question if asked else "")


def shown_status(status: str, asked: Sequence[Question]) -> str:
    """The status of now, or that the run waits for an answer."""
    return WAITING if asked and status in UNDECIDED else status


def _of(rows: list[RunRow], status: str) -> list[RunRow]:
    return [row for row in rows if row.status == status]


def _folders(runs_dir: Path) -> list[str]:
    try:
        with os.scandir(runs_dir) as entries:
            return [
                each.name for each in entries if each.is_dir(follow_symlinks=False) and not each.name.startswith(".")
            ]
    except OSError:
        return []
