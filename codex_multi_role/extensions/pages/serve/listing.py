"""The runs that the pages show, what can be done about them, and the list of the first page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import codex_multi_role.lifecycle.running as running
from codex_multi_role.cli.run_additions import RemoteRun, give_answer, request_pause
from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.extensions.machines.workers.shared_words import QUEUED
from codex_multi_role.extensions.pages.serve.starting import RunStarter, typed
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.presentation.outcome import WAITING, has_failed
from codex_multi_role.presentation.recorded import RecordedRun, Records, open_questions, status_now, totals_now
from codex_multi_role.run_folder import Answer, Question, RunFolder
from codex_multi_role.run_folder.cost import Cost
from codex_multi_role.run_folder.folder import RUN_ID, SHARED
from codex_multi_role.run_folder.owner import is_alive

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


class ServedRuns:
    """The runs in one folder. Threads may share it."""

    has_workers = False
    """Whether there are also runs that workers execute."""

    def __init__(self, runs_dir: Path, starter: RunStarter, is_ending: Callable[[], bool]) -> None:
        self.runs_dir = runs_dir
        self._starter = starter
        self._is_ending = is_ending
        self._records = Records(runs_dir)

    def look(self) -> list[RecordedRun]:
        """All runs, oldest first. Raises `StorageError`."""
        return self._records.look()

    def folder(self, run_id: str) -> RunFolder | None:
        """The folder of the run with exactly this ID; None if not found. Raises `StorageError`."""
        folder = RunFolder(self.runs_dir / run_id)
        known = RUN_ID.fullmatch(run_id) and folder.record_path.is_file() and not folder.path.is_symlink()
        return folder if known else None

    def run_id_of(self, reference: str) -> str:
        """The ID of the run that ``reference`` names. Raises `RunNotFound`, `StorageError`."""
        return RunFolder.find(self.runs_dir, reference).run_id

    def refresh(self, folder: RunFolder) -> str:
        """Bring the folder up to date if it is a copy; returns what keeps it from being so, or nothing."""
        return ""

    def complete_report(self, folder: RunFolder) -> None:
        """Write the run's report if it has one that is not in the folder. Raises `StorageError`."""

    def elsewhere(self, folder: RunFolder) -> RemoteRun | None:
        """The run if processes elsewhere work on it, so that ``folder`` is a copy. Raises `StorageError`."""
        return None

    def answer(
        self, folder: RunFolder, *, approved: bool, comment: str, question: str, values: Mapping[str, object]
    ) -> Question:
        """Answer a question of the run. Raises `UsageError`, `StorageError`."""
        answer = Answer(approved, comment, values=dict(values))
        return give_answer(self.elsewhere(folder) or folder, question, answer)

    def go_on(self, folder: RunFolder) -> None:
        """Resume a run that was answered, unless it does so by itself. Raises what `RunStarter.start` raises."""
        if not self.elsewhere(folder) and not is_alive(folder):
            self._starter.resume(folder)

    def fork(self, folder: RunFolder, point: str) -> str:
        """Start a new run from a visit of a step; returns its id. Raises what `RunStarter.start` raises."""
        return self._starter.fork(folder, point)

    def cancel_task(self, folder: RunFolder, task: str, comment: str) -> None:
        """Cancel a task of the run. Raises `UsageError`, `StorageError`."""
        if run := self.elsewhere(folder):
            run.cancel_task(task, comment)
        else:
            running.cancel_task(folder.run_id, task, runs_dir=folder.path.parent, comment=comment)

    def stop(self, folder: RunFolder) -> None:
        """Stop the run, and wait until it has stopped. Raises `UsageError`, `StorageError`."""
        if run := self.elsewhere(folder):
            run.cancel()
        else:
            stop_run(folder, self._is_ending)

    def pause(self, folder: RunFolder) -> None:
        """Let the run park once the turns at work have ended. Raises `UsageError`, `StorageError`."""
        request_pause(self.elsewhere(folder) or folder)

    def resume(self, folder: RunFolder, limits: Mapping[str, str]) -> None:
        """Resume the run, with other ``limits``, by option. Raises what `RunStarter.start` raises."""
        if run := self.elsewhere(folder):
            changes = {name.replace("-", "_"): text for name, text in limits.items()}
            run.resume({name: typed(name, text) for name, text in changes.items()})
        else:
            self._starter.resume(folder, limits)
