"""Journals in a shared database, without working on a run: read them, fork them, delete them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from codex_multi_role.engine.dbos_library import DBOSClient, SetWorkflowID
from codex_multi_role.engine.journal_errors import TRY_AGAIN, journal_error
from codex_multi_role.engine.recorded_step import JOURNAL_VERSION, Past, RecordedStep, require_version
from codex_multi_role.engine.shared_journal import APPLICATION, QUEUE_SECONDS, resumed_queue
from codex_multi_role.engine.shared_sqlite import url_with_clock
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.host.database_url import with_timeouts

NO_QUEUE = "forked"
"""No process listens to it: the fork waits there until its own process starts it."""


def fork_shared(database_url: str, run_id: str, fork_id: str, place: int) -> Past:
    """Give ``fork_id`` what ``run_id`` recorded before ``place``; returns those steps by position.

    Raises `StorageError`, also for a journal of another version.
    """
    with _client(database_url) as client:
        known = client.list_workflows(workflow_ids=[run_id], load_input=False, load_output=False)
        if not known:
            raise StorageError(f"the journal {database_url} does not contain run {run_id}", "Restore it from a copy.")
        require_version(f"of run {run_id}", known[0].app_version)
        client.register_queue(resumed_queue(fork_id), polling_interval_sec=QUEUE_SECONDS)
        with SetWorkflowID(fork_id):
            client.fork_workflow(run_id, place, application_version=JOURNAL_VERSION, queue_name=NO_QUEUE)
        return _by_place(client.list_workflow_steps(fork_id))


def shared_steps(database_url: str, run_id: str) -> Past:
    """What the run has recorded; empty if no session has reached the journal. Raises `StorageError`."""
    with _client(database_url) as client:
        known = client.list_workflows(workflow_ids=[run_id], load_input=False, load_output=False)
        if not known:
            return {}
        require_version(f"of run {run_id}", known[0].app_version)
        return _by_place(client.list_workflow_steps(run_id))


def _by_place(steps: Sequence[Any]) -> Past:
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
