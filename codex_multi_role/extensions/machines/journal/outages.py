"""A database that does not answer for a while: the run waits for it, says so, and gives up at a deadline.

DBOS would wait as well, but without an end, silently, and for up to 90 s longer than the outage lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Dialect, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection

from codex_multi_role.errors import RunInterrupted
from codex_multi_role.extensions.machines.journal.database_errors import database_error, in_words

OUTAGE_SECONDS = 600.0
OUTAGE = f"{OUTAGE_SECONDS / 60:g} minutes"
PAUSE_SECONDS = 1.0
DRIVER = "psycopg"


class Outages:
    """Connects to Postgres, once `patient` with as many attempts as `OUTAGE_SECONDS` allow.

    ``name`` is what the errors call the database, ``warn`` gets a line about each outage. ``is_stopping``: whether the
    run is to stop, and a wait with it.
    """

    def __init__(self, name: str, warn: Callable[[str], None], is_stopping: Callable[[], bool]) -> None:
        self._name = name
        self._warn = warn
        self._is_stopping = is_stopping
        self._closed = threading.Event()
        self._changing = threading.Lock()  # waits: for memory only
        self._began: float | None = None
        self.patient = False

    @contextmanager
    def waited_for(self) -> Iterator[None]:
        """Every connection to Postgres within the block is made by this object."""
        event.listen(Engine, "do_connect", self._connect)
        try:
            yield
        finally:
            event.remove(Engine, "do_connect", self._connect)

    def close(self) -> None:
        """End every wait: nothing more is recorded."""
        self._closed.set()

    def _connect(
        self, dialect: Dialect, _: object, arguments: list[Any], options: dict[str, Any]
    ) -> DBAPIConnection | None:
        """The connection, or None: SQLAlchemy makes it itself. Raises `StorageError`, `RunInterrupted`."""
        if dialect.driver != DRIVER:
            return None
        end = time.monotonic() + OUTAGE_SECONDS
        refused: Exception | None = None
        while refused is None or time.monotonic() < end:
            try:
                connection = dialect.connect(*arguments, **options)
            except dialect.loaded_dbapi.Error as error:
                refused = error
                self._require_patience(error)
                self._closed.wait(PAUSE_SECONDS)
            else:
                self._note_answer()
                return connection
        raise database_error(f"{self._name} has not answered for {OUTAGE}", refused) from refused

    def _require_patience(self, error: Exception) -> None:
        """Return if the connection may be tried again."""
        if not self.patient or self._closed.is_set():
            raise database_error(f"{self._name} cannot be opened", error) from error
        if self._is_stopping():
            raise RunInterrupted from error
        with self._changing:
            is_known, self._began = self._began is not None, self._began or time.monotonic()
        if not is_known:
            self._warn(f"{self._name} does not answer; the run waits up to {OUTAGE}: {in_words(error)}")

    def _note_answer(self) -> None:
        with self._changing:
            began, self._began = self._began, None
        if began is not None and not self._closed.is_set():
            self._warn(f"{self._name} answers again, after {time.monotonic() - began:.0f} s")
