"""What is said of the runs that workers execute, wherever runs are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from codex_multi_role.cli.run_additions import Told
from codex_multi_role.presentation.outcome import IDLE, StatusWords
from codex_multi_role.presentation.wording import duration, one_line
from codex_multi_role.run_folder.folder import SHARED

QUEUED = "queued"
STATUS = StatusWords(QUEUED, IDLE, "…", "The run waits for a worker.", "Waiting for a worker")


def told(record: Mapping[str, Any]) -> Told:
    """Of the run with this `shared_record.shared_record`."""
    shared = record[SHARED]
    who, where, lines = shared["worker"] or "-", ", on the worker", tuple(_lines(record))
    if record["status"] != QUEUED:
        return Told(who, where, lines=lines)
    waits = one_line(f"{record['run_id']} waits in the queue {shared['queue']}: {shared['why']}", 500)
    return Told(who, where, shared["why"], waits, lines)


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Who works on the run, or why nobody does."""
    shared = record[SHARED]
    if shared["worker"]:
        waits = f": {one_line(shared['why'], 500)}" if shared["why"] else ""
        yield f"worker     {shared['worker']} (attempt {shared['attempt']}){waits}"
    elif record["status"] == QUEUED:
        waited = (datetime.now(UTC) - datetime.fromisoformat(shared["since"])).total_seconds()
        yield f"queue      {shared['queue']}, for {duration(max(0.0, waited))}: {one_line(shared['why'], 500)}"
