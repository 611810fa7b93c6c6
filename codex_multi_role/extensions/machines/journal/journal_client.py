"""Journals in a shared database: open them for a run, and read, fork and delete them without working on one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from codex_multi_role.engine.durable_run import Begin
from codex_multi_role.engine.journal_slots import TRY_AGAIN, Past, RecordedStep, require_version
from codex_multi_role.errors import CodexMultiRoleError, StorageError
from codex_multi_role.extensions.machines.journal.database_errors import database_error
from codex_multi_role.extensions.machines.journal.database_url import with_timeouts
from codex_multi_role.extensions.machines.journal.dbos_library import JSON_ROWS, DBOSClient, SetWorkflowID, refusal
from codex_multi_role.extensions.machines.journal.shared_journal import (
    APPLICATION,
    QUEUE_SECONDS,
    ROWS,
    SHARED_VERSION,
    open_shared,
    resumed_queue,
)
from codex_multi_role.extensions.machines.journal.shared_sqlite import url_with_clock
from codex_multi_role.run_folder import RunFolder

NO_QUEUE = "forked"
"""No process listens to it: the fork waits there until its own process starts it."""


class SharedJournals:
    """The journals in one database. `lifecycle.placement.Journals` says what each method does."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url

    def open(
        self, run: RunFolder, warn: Callable[[str], None], is_stopping: Callable[[], bool]
    ) -> AbstractContextManager[Begin]:
        return open_shared(self._url, run.run_id, warn, is_stopping)

    def steps(self, run: RunFolder) -> Past:
        with _client(self._url) as client:
            known = client.list_workflows(workflow_ids=[run.run_id], load_input=False, load_output=False)
            if not known:
                return {}
            require_version(f"of run {run.run_id}", known[0].app_version, ROWS)
            return _by_place(run, client.list_workflow_steps(run.run_id))

    def fork(self, parent: RunFolder, fork: RunFolder, place: int) -> Past:
        with _client(self._url) as client:
            known = client.list_workflows(workflow_ids=[parent.run_id], load_input=False, load_output=False)
            if not known:
                missing = f"the journal {self._url} does not contain run {parent.run_id}"
                raise StorageError(missing, "Restore it from a copy.")
            require_version(f"of run {parent.run_id}", known[0].app_version, ROWS)
            client.register_queue(resumed_queue(fork.run_id), polling_interval_sec=QUEUE_SECONDS)
            with SetWorkflowID(fork.run_id):
                client.fork_workflow(parent.run_id, place, application_version=SHARED_VERSION, queue_name=NO_QUEUE)
            return _by_place(fork, client.list_workflow_steps(fork.run_id))

    def forget(self, run: RunFolder) -> None:
        with _client(self._url) as client:
            client.delete_workflow(run.run_id)


def _by_place(run: RunFolder, steps: Sequence[Any]) -> Past:
    if not all(isinstance(step["output"], dict) for step in steps):  # DBOS has the text of what it cannot read
        raise refusal(f"a row of run {run.run_id}")
    return {step["function_id"]: RecordedStep(step["function_name"], step["output"]) for step in steps}


@contextmanager
def _client(database_url: str) -> Iterator[DBOSClient]:
    """The journal without a worker: nothing in it is started."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    try:
        client = DBOSClient(
            system_database_url=with_timeouts(url_with_clock(database_url)),
            application_name=APPLICATION,
            retry_connection_errors=False,
            serializer=JSON_ROWS,
        )
        try:
            yield client
        finally:
            client.destroy()
    except CodexMultiRoleError:
        raise
    except Exception as error:
        raise database_error(f"the journal {database_url} cannot be used", error, TRY_AGAIN) from error
