"""The journal in a run folder: a SQLite file with one row per recorded step.

One process works on a run, so a step needs no more than its row, which is on the disk before anybody uses the result.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from codex_multi_role.engine.durable_run import Begin, DurableRun
from codex_multi_role.engine.journal_slots import JOURNAL_VERSION, Past, RecordedStep, journal_error, require_version
from codex_multi_role.errors import StorageError
from codex_multi_role.reading.json_types import Json
from codex_multi_role.run_folder import RunFolder

TABLE = "CREATE TABLE steps (position INTEGER PRIMARY KEY, name TEXT NOT NULL, output TEXT NOT NULL)"


class FileJournal:
    """An open journal. All threads of the run share it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # waits: for one statement; other processes only read the file

    def find(self, position: int) -> RecordedStep | None:
        with self._lock:
            row = self._connection.execute("SELECT name, output FROM steps WHERE position = ?", [position]).fetchone()
        return row and RecordedStep(row[0], json.loads(row[1]))

    def add(self, position: int, name: str, output: str) -> None:
        with self._lock:
            self._connection.execute("INSERT INTO steps VALUES (?, ?, ?)", [position, name, output])

    def close(self) -> None:
        """Close the journal: work that has not ended cannot be recorded."""
        with self._lock:
            self._connection.close()


@dataclass(frozen=True)
class _FileSlot:
    journal: FileJournal
    step_id: int

    def find(self, name: str, /) -> Json | None:
        """Raises `StorageError` if other work was done here."""
        known = self.journal.find(self.step_id)
        if known is not None and known.name != name:
            raise StorageError(
                f'position {self.step_id} of the journal has "{known.name}", and "{name}" would be done there',
                "Undo the changes to the flow and its roles, or fork the run.",
            )
        return None if known is None else known.output

    def add(self, name: str, result: Json, /) -> Json:
        output = json.dumps(result)
        self.journal.add(self.step_id, name, output)
        return dict(json.loads(output))


@contextmanager
def open_file(path: Path) -> Iterator[Begin]:
    """Open the file, which is created if it does not exist. Raises `StorageError`."""
    try:
        connection = _opened(path)
    except sqlite3.Error as error:
        raise journal_error(f"the journal {path} cannot be opened", error) from error
    journal = FileJournal(connection)

    def begin(run: DurableRun) -> None:
        slots = (_FileSlot(journal, number) for number in count(1))
        threading.Thread(target=run.work, args=(slots,), name="flow").start()

    try:
        yield begin
    finally:
        journal.close()


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, and that writes each step with one disk flush (1.0 ms, not 2.6)."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if _is_empty(connection):
            connection.executescript(f"BEGIN; {TABLE}; PRAGMA user_version={JOURNAL_VERSION}; COMMIT")
        _require_readable(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables


def _require_readable(connection: sqlite3.Connection, path: Path) -> None:
    (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if problem != "ok":
        raise sqlite3.DatabaseError(problem)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    require_version(path, str(version) if version else None)


def steps_of_file(path: Path) -> Past:
    """The recorded steps of a journal, which may be live. Raises `StorageError`."""
    if not (path.exists() and path.stat().st_size):
        return {}
    try:
        with closing(_connected_for_reading(path)) as connection:
            return {} if _is_empty(connection) else _steps(connection, path)
    except sqlite3.Error as error:
        raise StorageError(f"the journal {path} cannot be read: {error}") from error


def _steps(connection: sqlite3.Connection, path: Path) -> Past:
    _require_readable(connection, path)
    rows = connection.execute("SELECT position, name, output FROM steps ORDER BY position")
    return {position: RecordedStep(name, json.loads(output)) for position, name, output in rows}


def fork_file(source: Path, target: Path, position: int) -> Past:
    """Create the journal ``target`` with what ``source``, which may be live, recorded before ``position``.

    Returns those steps. Raises `StorageError`.
    """
    if not (source.exists() and source.stat().st_size):
        raise StorageError(
            f"the journal {source} is missing, and with it the record of finished work",
            "Restore it from a copy, or start another run.",
        )
    try:
        with closing(_connected_for_reading(source)) as here, closing(sqlite3.connect(target)) as there:
            here.backup(there)
            past = _steps(there, source)
            with there:
                there.execute("DELETE FROM steps WHERE position >= ?", [position])
    except sqlite3.Error as error:
        raise StorageError(f"the journal {source} cannot be copied: {error}") from error
    return {number: step for number, step in past.items() if number < position}


class JournalFiles:
    """The journals of runs, each in its folder. `lifecycle.placement.Journals` says what each method does."""

    def open(self, run: RunFolder, *_: object) -> AbstractContextManager[Begin]:
        return open_file(run.journal_path)

    def steps(self, run: RunFolder) -> Past:
        return steps_of_file(run.journal_path)

    def fork(self, parent: RunFolder, fork: RunFolder, place: int) -> Past:
        return fork_file(parent.journal_path, fork.journal_path, place)

    def forget(self, run: RunFolder) -> None:
        """Do nothing: there is nothing outside of the folder."""


def _connected_for_reading(path: Path) -> sqlite3.Connection:
    # A closed journal has no write-ahead log; opened as immutable, it gets none.
    closed = not path.with_name(f"{path.name}-wal").exists()
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if closed else ''}", uri=True)
