"""The process that a worker starts for one run: ``python -m`` and the name of this module, with ``--order N``.

It reads its order from the descriptor N, and stops when its standard input closes, because its worker is gone then. It
reports to the worker in lines of JSON: ``run_id`` when it has a run, ``problem`` when it has to wait for something
else, ``result`` at its end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from codex_multi_role.errors import CodexMultiRoleError, ExitCode
from codex_multi_role.extensions.machines.journal.run_queue import QueuedJournal
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.own_process import stop_at_end_of
from codex_multi_role.extensions.machines.workers.queued_runs import AttemptOver, QueuedRuns
from codex_multi_role.extensions.machines.workers.run_attempt import RunAttempt
from codex_multi_role.extensions.machines.workers.submission import open_known_store
from codex_multi_role.host.own_python import read_order
from codex_multi_role.reading.json_types import Json

ARRIVAL_SECONDS = 10.0
"""How long a process waits for a run; another worker may have been faster."""
DRAIN = signal.SIGUSR1
"""Asks the process to finish the turns in progress and give its run back."""


def main(descriptor: int) -> int:
    """Work on at most one run, as the order in ``descriptor`` says; returns the exit code of the process."""
    draining = threading.Event()
    signal.signal(DRAIN, lambda _number, _frame: draining.set())
    order = read_order(descriptor)
    stop_at_end_of(sys.stdin.fileno())
    try:
        database = Database(order["database_url"])
        store = open_known_store(database, order["store"])  # its folder may have been unmounted meanwhile
        _work(database, QueuedRuns(database, order["max_crashes"]), store, order, draining)
    except CodexMultiRoleError as error:
        sys.stderr.write(f"error: {error}\nhint: {error.hint}\n")  # noqa: TID251 - its worker logs it
        return int(error.exit_code)
    return int(ExitCode.GOAL_REACHED)


def _work(database: Database, queued: QueuedRuns, store: Store, order: Json, draining: threading.Event) -> None:
    journal = QueuedJournal(database.url, order["queue"])
    with journal.open():
        run_id = journal.next_run(ARRIVAL_SECONDS)
        run = queued.claim(run_id, order["worker"], order["identity"]) if run_id else None
        if run is None:
            return
        _report(run_id=run.run_id)
        try:
            folder = Path(order["folder"])
            _report(result=RunAttempt(database, queued, store, run, folder, draining, _report).work(journal))
        except AttemptOver as over:
            _report(result=str(over))


def _report(**news: str) -> None:
    with suppress(OSError):  # the worker is gone, and this process stops soon
        os.write(sys.stdout.fileno(), json.dumps(news).encode() + b"\n")


if __name__ == "__main__":
    exit_code = main(int(sys.argv[2]))
    os._exit(exit_code)  # the workflow of the run never returns, so its thread would keep the process
