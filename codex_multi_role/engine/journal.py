"""The durable journal: DBOS on the run's own SQLite file, or on a database named with ``--database-url``."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

from codex_multi_role.engine.dbos_library import DBOS, SetWorkflowID
from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.engine.journal_slots import journal_error
from codex_multi_role.engine.sqlite_clock import url_with_clock
from codex_multi_role.errors import StorageError

APPLICATION = "codex-multi-role"
JOURNAL_VERSION = "1"
"""Rises when recorded steps change their order or meaning; a journal of another version cannot be resumed."""

SQLITE_PREFIX = "sqlite:///"
QUEUE_SECONDS = 0.1
"""How often it is looked whether a run is to go on; the engine looks at its own queue once a second only. A queue that
an earlier session registered is looked at from the start."""
LISTENER_SECONDS = 0.05
"""How often the journal looks for messages; closing it waits for one such look (by default a whole second)."""


def sqlite_url(path: Path) -> str:
    """The database URL of a file, whatever characters its path has."""
    return f"{SQLITE_PREFIX}{quote(str(path))}"


def resumed_queue(run_id: str) -> str:
    """Where a run waits to be gone on with. Each has its own: of all processes at one database only one has it live."""
    return f"resumed-{run_id}"


@contextmanager
def open_journal(database_url: str, run_id: str) -> Iterator[None]:
    """Open the journal of that run for the time of the block.

    Raises `StorageError` when the database cannot be used, `UsageError` if the SQLite library is too old.
    """
    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    if not log.handlers:  # its own would hold on to this run's standard error, which the next one may find closed
        log.addHandler(logging.NullHandler())
    _use_write_ahead_log(database_url)
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": url_with_clock(database_url),
            "application_version": JOURNAL_VERSION,
            # Unlike any before, whatever pids come again: DBOS begins anew by itself what its executor left unfinished,
            # and so would begin twice what is gone on with.
            "executor_id": f"{os.uname().nodename}-{os.getpid()}-{uuid4().hex}",
            "notification_listener_polling_interval_sec": LISTENER_SECONDS,
            "console_log_level": "CRITICAL",
            "log_level": "CRITICAL",
        }
    )
    DBOS.listen_queues([resumed_queue(run_id)])
    try:
        try:
            DBOS.launch()
        except Exception as error:
            raise journal_error(f"the journal {database_url} cannot be opened", error) from error
        yield
    finally:
        DBOS.destroy()


def _use_write_ahead_log(database_url: str) -> None:
    """The file remembers this mode; a recorded step then costs one flush to disk instead of four (1.0 ms, not 2.6)."""
    if not database_url.startswith(SQLITE_PREFIX):
        return
    try:
        with closing(sqlite3.connect(unquote(database_url.removeprefix(SQLITE_PREFIX)))) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise StorageError(f"the journal {database_url} cannot be opened: {error}") from error


_live: dict[str, DurableRun] = {}


@DBOS.workflow(name="flow")
def _flow(_first_id: str) -> None:
    """What the journal knows of a run is its id; its live parts are in this process.

    The argument of a fork is the id of the run it began as, so the workflow's own id counts.
    """
    _live.pop(str(DBOS.workflow_id)).work()


def begin(run_id: str, durable: DurableRun) -> None:
    """Start the run's workflow, or go on with it after its last recorded step. Returns at once.

    Raises `StorageError` for a journal of another version, and for one that takes nothing.
    """
    _live[run_id] = durable
    try:
        known = DBOS.get_workflow_status(run_id)
        if known is not None:
            require_version(run_id, known.app_version)
        DBOS.register_queue(resumed_queue(run_id), polling_interval_sec=QUEUE_SECONDS)
        if known is not None:
            DBOS.resume_workflow(run_id, queue_name=resumed_queue(run_id))
            return
        with SetWorkflowID(run_id):
            DBOS.start_workflow(_flow, run_id)
    except StorageError:
        raise
    except Exception as error:
        raise journal_error("the journal failed as the run was to begin", error) from error


def require_version(run_id: str, version: str | None) -> None:
    """Raise `StorageError` for a run whose journal this program does not read."""
    if version != JOURNAL_VERSION:
        raise StorageError(
            f"the journal of run {run_id} has version {version}, this program writes {JOURNAL_VERSION}",
            "Use the version of codex-multi-role that `run.json` names.",
        )
