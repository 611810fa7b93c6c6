"""The journal in a database that several runs share: each run is a workflow of DBOS, each slot one of its steps."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import uuid4

from codex_multi_role.engine.durable_run import Begin, DurableRun
from codex_multi_role.engine.journal_slots import (
    JOURNAL_VERSION,
    NothingRecorded,
    RunHalted,
    require_version,
)
from codex_multi_role.errors import CodexMultiRoleError
from codex_multi_role.extensions.machines.journal.database_errors import database_error
from codex_multi_role.extensions.machines.journal.database_url import with_timeouts
from codex_multi_role.extensions.machines.journal.dbos_library import DBOS, JSON_ROWS, SetWorkflowID, refusal
from codex_multi_role.extensions.machines.journal.outages import Outages
from codex_multi_role.extensions.machines.journal.shared_sqlite import create_file, url_with_clock
from codex_multi_role.reading.json_types import Json

APPLICATION = "codex-multi-role"
ROWS = "-json"
SHARED_VERSION = JOURNAL_VERSION + ROWS
"""Of a journal in a database, which also says how its rows are written: without `ROWS` they are pickles."""
FLOW_WORKFLOW = "flow"

QUEUE_SECONDS = 0.1
"""Polling interval for a run to resume, not the engine's 1 s; an earlier session's queue is polled from the start."""
LISTENER_SECONDS = 0.05
"""How often the journal looks for messages; closing it waits for one such look (by default a whole second)."""


def resumed_queue(run_id: str) -> str:
    """The queue in which a run waits to be resumed. Each run has its own, because its live parts are in one process."""
    return f"resumed-{run_id}"


@contextmanager
def open_shared(
    database_url: str, run_id: str, warn: Callable[[str], None], is_stopping: Callable[[], bool]
) -> Iterator[Begin]:
    """As `Journals.open`. Raises `UsageError` if the SQLite library is too old."""
    live: list[DurableRun] = []

    def begin(durable: DurableRun) -> None:
        live.append(durable)
        _begin(run_id)

    outages = Outages(f"the journal {database_url}", warn, is_stopping)
    with listening(database_url, resumed_queue(run_id), lambda _: work_and_halt(live.pop()), outages):
        yield begin


@contextmanager
def listening(database_url: str, queue: str, work: Callable[[str], None], outages: Outages) -> Iterator[None]:
    """Be a DBOS executor for the runs of one queue during the block: each gets ``work`` with its ID.

    Raises what `Journals.open` raises.
    """
    _work[:] = [work]
    silence_library()
    create_file(database_url)
    with outages.waited_for():
        try:
            _launch(database_url, queue)
            outages.patient = True
            yield
        finally:
            outages.close()
            DBOS.destroy()


def _launch(database_url: str, queue: str) -> None:
    try:
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": with_timeouts(url_with_clock(database_url)),
                "application_version": SHARED_VERSION,
                "serializer": JSON_ROWS,
                # Unique even if a pid is reused: DBOS itself restarts the unfinished work of the same executor, and a
                # resumed run would start twice.
                "executor_id": f"{os.uname().nodename}-{os.getpid()}-{uuid4().hex}",
                "notification_listener_polling_interval_sec": LISTENER_SECONDS,
                "console_log_level": "CRITICAL",
                "log_level": "CRITICAL",
            }
        )
        DBOS.listen_queues([queue])
        DBOS.launch()
    except CodexMultiRoleError:
        raise
    except Exception as error:
        raise database_error(f"the journal {database_url} cannot be opened", error) from error


def silence_library() -> None:
    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    if not log.handlers:  # DBOS's own would keep this run's stderr, which the next run may find closed
        log.addHandler(logging.NullHandler())


def create_journal(database_url: str) -> None:
    """Create the engine's own tables, or bring them up to date. Raises `StorageError`."""
    silence_library()
    try:
        DBOS.migrate(with_timeouts(url_with_clock(database_url)))
    except Exception as error:
        raise database_error(f"the tables of the journal {database_url} cannot be created", error) from error


_work: list[Callable[[str], None]] = []
"""What this process does for a run that the engine starts. The journal knows only the ID of a run."""


@DBOS.workflow(name=FLOW_WORKFLOW)
def _flow(_first_id: str) -> None:
    """A fork's argument is the ID of the run it started as, so the workflow's own ID counts."""
    _work[0](str(DBOS.workflow_id))


@dataclass(frozen=True)
class _SharedSlot:
    step: Any  # DBOS's reservation, whose type it does not export

    @property
    def step_id(self) -> int:
        return int(self.step.step_id)

    def find(self, name: str, /) -> Json | None:
        try:
            return self._run(name, _look)
        except NothingRecorded:
            return None

    def add(self, name: str, result: Json, /) -> Json:
        return self._run(name, lambda: result)

    def _run(self, name: str, work: Callable[[], Json]) -> Json:
        # A copy, because a reservation runs only once, and looking comes before recording.
        output: Json = copy(self.step).run({"name": name}, work)
        return output


def _look() -> Json:
    raise NothingRecorded


def work_and_halt(durable: DurableRun) -> NoReturn:
    """The body of the workflow. It never ends for DBOS, so that the run can be resumed: ``run.json`` has its end."""
    durable.work(iter(lambda: _SharedSlot(DBOS.reserve_step()), None))
    raise RunHalted(durable.ending.result(0))


def _begin(run_id: str) -> None:
    try:
        known = DBOS.get_workflow_status(run_id)
        if known is not None:
            require_version(f"of run {run_id}", known.app_version, ROWS)
            if not isinstance(known.input, dict):  # DBOS has the text of what it cannot read, and would start nothing
                raise refusal(f"the row of run {run_id}")
            DBOS.register_queue(resumed_queue(run_id), polling_interval_sec=QUEUE_SECONDS)
            DBOS.resume_workflow(run_id, queue_name=resumed_queue(run_id))
            return
        with SetWorkflowID(run_id):
            DBOS.start_workflow(_flow, run_id)
    except CodexMultiRoleError:
        raise
    except Exception as error:
        raise database_error("the journal failed when the run started", error) from error
