"""A worker without processes: it ends every run of a database at once, with what is to be recorded of it."""

from __future__ import annotations

import threading
from typing import Any

from codex_multi_role.extensions.machines.workers.database import Database
from codex_multi_role.extensions.machines.workers.queued_runs import QueuedRuns, RunState

WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.1


class PlayedWorker(threading.Thread):
    """Takes ``count`` waiting runs as a worker does, and ends each with ``ending``."""

    def __init__(self, url: str, count: int, **ending: Any) -> None:
        super().__init__(daemon=True)
        self._url, self._count, self._ending = url, count, ending
        self._over = threading.Event()

    def run(self) -> None:
        database = Database.open(self._url)
        queued = QueuedRuns(database)
        while self._count and not self._over.wait(LOOK_SECONDS):
            for waiting in queued.list():
                if self._count and (run := queued.claim(waiting.run_id, "played", "identity")):
                    queued.save(run, **self._ending)
                    self._count -= 1
        queued.close()
        database.close()

    def end(self) -> None:
        self._over.set()
        self.join(WAIT_SECONDS)


def ending(code: int, status: str, **more: Any) -> dict[str, Any]:
    """Of three turns."""
    record = {"status": status, "outcome": status, "exit_code": code, "totals": {"turns": 3, "input_tokens": 7}}
    return {"state": RunState.ENDED, "exit_code": code, "why": "as played", "record": record, **more}
