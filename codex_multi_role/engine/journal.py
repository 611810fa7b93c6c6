"""The durable journal: DBOS on the run's own SQLite file, or on a database named with ``--database-url``."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from dbos import DBOS, SetWorkflowID

from codex_multi_role.engine.durable_run import DurableRun
from codex_multi_role.errors import StorageError

APPLICATION = "codex-multi-role"
JOURNAL_VERSION = "1"
"""Rises when recorded steps change their order or meaning; a journal of another version cannot be resumed."""


@contextmanager
def journal(database_url: str) -> Iterator[None]:
    """Open the journal for the time of the block. Raises `StorageError` when the database cannot be used."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": database_url,
            "application_version": JOURNAL_VERSION,
            "executor_id": f"{os.uname().nodename}-{os.getpid()}",
            "console_log_level": "CRITICAL",
            "log_level": "CRITICAL",
        }
    )
    try:
        try:
            DBOS.launch()
        except Exception as error:
            raise StorageError(f"the journal {database_url} cannot be opened: {error}") from error
        yield
    finally:
        DBOS.destroy()


def begin(run_id: str, durable: DurableRun) -> None:
    """Start the run's workflow, or go on with it after its last recorded step. Returns at once."""
    if DBOS.get_workflow_status(run_id) is None:
        with SetWorkflowID(run_id):
            DBOS.start_workflow(durable.run_flow)
    else:
        DBOS.resume_workflow(run_id)
