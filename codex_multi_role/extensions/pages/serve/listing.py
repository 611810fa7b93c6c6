"""All runs for the first page: newest first, searchable, in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.presentation.outcome import WAITING, has_failed
from codex_multi_role.presentation.recorded import RecordedRun, open_questions, status_now, totals_now
from codex_multi_role.run_folder import Question, RunFolder
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import SHARED

ROWS = 20
WORKING, EVERY, FAILED = RunStatus.RUNNING, "all", "failed"


@dataclass(frozen=True)
class RunRow:
    """One run in the list. ``status``: the current one, or ``waiting`` if a person is asked something."""

    folder: RunFolder
    record: dict[str, Any]
    status: str
    question: str

    @property
    def run_id(self) -> str:
        return self.folder.run_id

    @cached_property
    def totals(self) -> dict[str, Any]:
        """Computed only for rows that are shown: without a recorded end, it reads the run's turns."""
        return totals_now(self.folder, self.record)

    @property
    def turns(self) -> int:
        return int(self.totals.get("turns", 0))

    @property
    def seconds(self) -> float:
        return float(self.totals.get("seconds") or 0)

    @property
    def cost(self) -> Cost:
        return Cost.of_totals(self.totals)

    def is_of(self, flow: str, since: str) -> bool:
        return flow in ("", self.record.get("flow")) and str(self.record.get("started_at", "")) >= since

    def matches(self, words: list[str]) -> bool:
        told = (self.record.get(name) for name in ("goal", "flow", "outcome"))
        searched = (self.run_id, self.status, self.question, *told)
        text = " ".join(str(each) for each in searched if each).lower()
        return all(word in text for word in words)


NEWEST = "started"
SORTS: dict[str, Callable[[RunRow], float]] = {
    "duration": lambda row: row.seconds,
    "cost": lambda row: float(row.cost.known or 0),
    "turns": lambda row: row.turns,
}
"""Besides `NEWEST`; the largest first. They read the turns of runs without a recorded end."""


@dataclass(frozen=True)
class RunPage:
    """A page of the list; ``counts``: number of runs per filter (`EVERY`, `WORKING`, `WAITING`, `FAILED`).

    ``flows``: of all runs.
    """

    rows: list[RunRow]
    number: int
    pages: int
    found: int
    counts: dict[str, int]
    flows: list[str]


class RunList:
    """The runs that ``list_runs`` returns; threads may share it."""

    def __init__(self, list_runs: Callable[[], list[RecordedRun]]) -> None:
        self._list_runs = list_runs

    def page(
        self, *, search: str = "", show: str = EVERY, flow: str = "", since: str = "", sort: str = "", number: int = 1
    ) -> RunPage:
        """Return page ``number``, or the nearest existing one. ``since``: a date, of the start in UTC."""
        words = search.lower().split()
        known = self._rows()
        every = [row for row in known if row.matches(words) and row.is_of(flow, since)]
        shown = {EVERY: every, WORKING: _with_status(every, WORKING), WAITING: _with_status(every, WAITING)}
        shown[FAILED] = [row for row in every if has_failed(row.status)]
        rows = shown.get(show, every)
        if sort in SORTS:
            rows = sorted(rows, key=SORTS[sort], reverse=True)
        pages = max(1, -(-len(rows) // ROWS))
        number = min(max(1, number), pages)
        flows = sorted({str(row.record.get("flow") or "") for row in known} - {""})
        counts = {name: len(matching) for name, matching in shown.items()}
        return RunPage(rows[(number - 1) * ROWS : number * ROWS], number, pages, len(rows), counts, flows)

    def _rows(self) -> list[RunRow]:
        rows = []
        for run in reversed(self._list_runs()):
            status, question = status_now(run.folder, run.record), _first_question(run.folder, run.record)
            rows.append(RunRow(run.folder, run.record, WAITING if question else status, question))
        return rows


def _first_question(folder: RunFolder, record: dict[str, Any]) -> str:
    """Return what the run asks. The list has no copies of the folders of shared runs: the reason says what they ask."""
    if SHARED in record:
        return str(record["reason"]) if record["exit_code"] == ExitCode.WAITING else ""
    asked = open_questions(folder, record)
    return asked[0].question if asked else ""


def shown_status(status: str, asked: Sequence[Question]) -> str:
    """Return the current status, or `WAITING` if the run waits for an answer."""
    return WAITING if asked and status != QUEUED else status


def _with_status(rows: list[RunRow], status: str) -> list[RunRow]:
    return [row for row in rows if row.status == status]
