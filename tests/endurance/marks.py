"""The places of a run's process at which a fault can strike, by kind.

A mark changes the package so that it calls ``passed`` at each place of its kind, with words that say which place it is
and the process that it concerns (0: only the run's own).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.engine import journal_file
from codex_multi_role.engine.journal_file import FileJournal
from codex_multi_role.run_folder import EventLog


class Passed(Protocol):
    def __call__(self, place: str, pid: int = 0) -> bool:
        """Whether the fault strikes here."""


Mark = Callable[[Passed], None]
Listener = Callable[..., object]


def ignore(*_: object, **__: object) -> None:
    """Do nothing."""


def surround(owner: object, name: str, before: Listener = ignore, after: Listener = ignore) -> None:
    """Call ``before`` and ``after`` with the arguments of each call of the function ``name`` of ``owner``."""
    work = getattr(owner, name)

    def surrounded(*arguments: Any, **options: Any) -> Any:
        before(*arguments, **options)
        result = work(*arguments, **options)
        after(*arguments, **options)
        return result

    setattr(owner, name, surrounded)


def announce(passed: Passed, owner: object, name: str, what: str) -> None:
    """Pass a place before and after each call of the function ``name`` of ``owner``."""
    told = [lambda *_, when=when, **__: passed(f"{when} {what}") for when in ("before", "after")]
    surround(owner, name, *told)


def mark_journal(passed: Passed) -> None:
    """Before and after the journal is created or opened, and every step that is recorded in it."""
    announce(passed, journal_file, "_opened", "opening")
    announce(passed, FileJournal, "add", "recording")


def mark_wire(passed: Passed) -> None:
    """Before and after every message to Codex; when one from Codex is in the log, before it is acted on."""
    pids: dict[WireLog, int] = {}

    def started(transport: AppServerTransport) -> None:
        pids[transport._log] = transport.pid

    def sent(when: str) -> Listener:
        def tell(transport: AppServerTransport, message: Mapping[str, Any]) -> None:
            name = message.get("method", "an answer")
            passed(f"{when} {name} to {_role(transport._log)}", transport.pid)

        return tell

    def logged(log: WireLog, direction: str, line: bytes) -> None:
        if direction == "in":
            passed(f"at {json.loads(line).get('method', 'an answer')} from {_role(log)}", pids.get(log, 0))

    surround(AppServerTransport, "start", after=started)
    surround(AppServerTransport, "_write", sent("before"), sent("after"))
    surround(WireLog, "write", after=logged)


def _role(log: WireLog) -> str:
    return log._path.parent.name


def mark_files(passed: Passed) -> None:
    """Before and after a file takes its place, in the run folder or in the workspace; after every event."""
    surround(
        os,
        "replace",
        before=lambda _source, target, **_: passed(f"before the file {target}"),
        after=lambda _source, target, **_: passed(f"after the file {target}"),
    )
    surround(EventLog, "publish", after=lambda _, *told: passed(f"after {names_of(told)}"))


def names_of(told: Sequence[object]) -> str:
    """Of the events that were written at once."""
    return f"the event {', '.join(type(each).__name__ for each in told)}"


def mark_children(passed: Passed) -> None:
    """When a child has been started: Codex, git, the tests."""

    def started(child: subprocess.Popen[bytes], argv: Sequence[str], **_: object) -> None:
        passed(f"after the start of {program(argv)}", child.pid)

    surround(subprocess.Popen, "__init__", after=started)


def program(argv: Sequence[str]) -> str:
    program = argv.index("sandbox") - 1 if "sandbox" in argv else 0  # a shell sets the PATH of Codex's sandbox
    return f"{Path(argv[program]).name} {argv[program + 1]}"


def mark_store(passed: Passed) -> None:
    """Before and after an object of a run is saved for other machines, and a goal's result is written."""
    from codex_multi_role.extensions.machines.batches.goal_results import ResultFile
    from codex_multi_role.extensions.machines.store.objects import LocalObjects

    announce(passed, LocalObjects, "write", "saving")
    announce(passed, ResultFile, "write", "the result")


def mark_database(passed: Passed) -> None:
    """Before and after a transaction is committed, and the engine records a step."""
    from dbos._sys_db import SystemDatabase

    from codex_multi_role.extensions.machines.workers import database, queued_runs
    from codex_multi_role.extensions.machines.workers.database import Database

    transaction = Database.transaction

    @contextmanager
    def struck(self: Database) -> Iterator[Any]:
        with transaction(self) as connection:
            yield connection
            passed("before committing")
        passed("after committing")

    queued_runs.ROWS_AT_ONCE = 2  # several transactions for a few goals
    vars(database)["Database"].transaction = struck
    announce(passed, SystemDatabase, "record_operation_result", "recording")


MARKS: Mapping[str, Mark] = {
    "journal": mark_journal,
    "wire": mark_wire,
    "files": mark_files,
    "children": mark_children,
    "store": mark_store,
    "database": mark_database,
}
"""Everything that a run writes, sends or starts, and what many machines share."""
