"""A fork's journal: what a run recorded before a position, under the fork's own ID."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from codex_multi_role.dataclass import dataclass
from codex_multi_role.engine import journal
from codex_multi_role.engine.dbos_library import DBOSClient, SetWorkflowID
from codex_multi_role.engine.journal import (
    APPLICATION,
    QUEUE_SECONDS,
    require_version,
    resumed_queue,
)
from codex_multi_role.engine.journal_errors import TRY_AGAIN, journal_error
from codex_multi_role.engine.journal_file import sqlite_url
from codex_multi_role.engine.sqlite_clock import url_with_clock
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.host.database_url import with_timeouts
from codex_multi_role.reading.json_types import Json

NO_QUEUE = "forked"
"""No process listens to it: the fork waits there until its own process starts it."""


@dataclass(frozen=True)
class RecordedStep:
    """A recorded step: what was done, and its result."""

    name: str
    output: Json


def copy_journal(source: Path, target: Path) -> None:
    """Copy the journal of a run, which may be live and is not changed. Raises `StorageError`."""
    if not (source.exists() and source.stat().st_size):
        raise StorageError(
            f"the journal {source} is missing, and with it the record of finished work",
            "Restore it from a copy, or start another run.",
        )
    # A closed journal has no write-ahead log; opened as immutable, it gets none.
    closed = not source.with_name(f"{source.name}-wal").exists()
    url = f"{source.resolve().as_uri()}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        with closing(sqlite3.connect(url, uri=True)) as here, closing(sqlite3.connect(target)) as there:
            here.backup(there)
    except sqlite3.Error as error:
        raise StorageError(f"the journal {source} cannot be copied: {error}") from error


def fork_journal(database_url: str, run_id: str, fork_id: str, place: int) -> dict[int, RecordedStep]:
    """Give ``fork_id`` what ``run_id`` recorded before ``place``; returns those steps by position.

    Raises `StorageError`, also for a journal of another version.
    """
    with _client(database_url) as client:
        known = client.list_workflows(workflow_ids=[run_id], load_input=False, load_output=False)
        if not known:
            raise StorageError(f"the journal {database_url} does not contain run {run_id}", "Restore it from a copy.")
        require_version(run_id, known[0].app_version)
        client.register_queue(resumed_queue(fork_id), polling_interval_sec=QUEUE_SECONDS)
        with SetWorkflowID(fork_id):
            client.fork_workflow(run_id, place, application_version=journal.JOURNAL_VERSION, queue_name=NO_QUEUE)
        return _by_place(client.list_workflow_steps(fork_id))


def recorded_steps(database: str | Path, run_id: str) -> dict[int, RecordedStep]:
    """What the run has recorded, by position; empty if no session has reached the journal. Raises `StorageError`.

    ``database``: a URL, or the run's own file.
    """
    if isinstance(database, Path) and not (database.exists() and database.stat().st_size):
        return {}
    with _client(database if isinstance(database, str) else sqlite_url(database)) as client:
        known = client.list_workflows(workflow_ids=[run_id], load_input=False, load_output=False)
        if not known:
            return {}
        require_version(run_id, known[0].app_version)
        return _by_place(client.list_workflow_steps(run_id))


def _by_place(steps: Sequence[Any]) -> dict[int, RecordedStep]:
    return {step["function_id"]: RecordedStep(step["function_name"], step["output"]) for step in steps}


def forget(database_url: str, run_id: str) -> None:
    """Delete a run from the journal. Raises `StorageError`."""
    with _client(database_url) as client:
        client.delete_workflow(run_id)


@contextmanager
def _client(database_url: str) -> Iterator[DBOSClient]:
    """The journal without a worker: nothing in it is started."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    try:
        client = DBOSClient(
            system_database_url=with_timeouts(url_with_clock(database_url)),
            application_name=APPLICATION,
            retry_connection_errors=False,
        )
        try:
            yield client
        finally:
            client.destroy()
    except CodexMultiRoleError:
        raise
    except Exception as error:
        raise journal_error(f"the journal {database_url} cannot be used", error, TRY_AGAIN) from error
