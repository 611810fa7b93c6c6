"""The pages ``/workers`` and ``/queues``: who works on what, what waits, and why."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from codex_multi_role.web.templating import page
from codex_multi_role.workers.database import Database
from codex_multi_role.workers.overview import queue_records, worker_records


class WorkerPages:
    """The pages about the workers of one database. Raises `StorageError` if it cannot be reached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def workers(self, request: Request) -> Response:
        return page("workers.html", workers=worker_records(self._database), has_workers=True)

    def queues(self, request: Request) -> Response:
        return page("queues.html", queues=queue_records(self._database), has_workers=True)
