"""The orchestrator in a process of its own, with places where it can be killed.

    python -m tests.torture.driver [--kill-at KIND:N | --fill-at KIND:N] --note FILE -- run --goal …

Runs ``codex-multi-role`` in this process. Whenever it passes a marked place it counts; at the N-th of a kind it writes
to FILE which place that was, and sends itself SIGKILL, or leaves not a byte free on the disk it works on, and goes on.
A run that comes to no such place leaves in FILE all it passed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

from codex_multi_role.cli.main import main as codex_multi_role
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.run_folder import EventLog
from tests.support.disks import fill
from tests.torture.points import KINDS, Point

Pass = Callable[[str], None]
Told = Callable[..., None]


def nothing(*_: object, **__: object) -> None:
    """Tells nobody."""


class Passes:
    """Counts by kind what is passed, and does ``harm`` at ``point``."""

    def __init__(self, note: Path, point: Point | None, harm: Callable[[], None]) -> None:
        self._note = note
        self._point = point
        self._harm = harm
        self._done = False
        self._lock = threading.Lock()
        self._passed: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def of(self, kind: str) -> Pass:
        """What a place of this kind calls, with words that say which it is."""
        return lambda place: self._count(kind, place)

    def _count(self, kind: str, place: str) -> None:
        with self._lock:
            self._passed[kind].append(place)
            if self._point == Point(kind, len(self._passed[kind])):
                self._note.write_text(json.dumps(place))
                self._done = True
                self._harm()

    def write(self) -> None:
        if not self._done:
            self._note.write_text(json.dumps(self._passed))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def surround(owner: object, name: str, before: Told = nothing, after: Told = nothing) -> None:
    """Make the function ``name`` of ``owner`` tell, with its own arguments, when it is called and when it is done."""
    work = getattr(owner, name)

    def surrounded(*arguments: Any, **options: Any) -> Any:
        before(*arguments, **options)
        result = work(*arguments, **options)
        after(*arguments, **options)
        return result

    setattr(owner, name, surrounded)


def mark_journal(passed: Pass) -> None:
    """Before and after every commit of DBOS that writes."""
    latest = threading.local()

    @event.listens_for(Engine, "before_cursor_execute")
    def remember(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        latest.statement = " ".join(statement.split()[:3])

    def before(_dialect: object, connection: Any) -> None:
        latest.writes = connection.in_transaction
        if latest.writes:
            passed(f"before the commit of: {latest.statement}")

    def after(*_: object) -> None:
        if latest.writes:
            passed(f"after the commit of: {latest.statement}")

    surround(DefaultDialect, "do_commit", before, after)


def mark_wire(passed: Pass) -> None:
    """Before and after every message to Codex; when one from Codex is in the log, before it is acted on."""

    def message_to(transport: AppServerTransport, message: Mapping[str, Any]) -> str:
        return f"{message.get('method', 'an answer')} to {_role(transport._log)}"

    def logged(log: WireLog, direction: str, line: bytes) -> None:
        if direction == "in":
            passed(f"at {json.loads(line).get('method', 'an answer')} from {_role(log)}")

    surround(
        AppServerTransport,
        "_write",
        before=lambda *message: passed(f"before {message_to(*message)}"),
        after=lambda *message: passed(f"after {message_to(*message)}"),
    )
    surround(WireLog, "write", after=logged)


def _role(log: WireLog) -> str:
    return log._path.parent.name


def mark_files(passed: Pass) -> None:
    """Before and after a file takes its place, in the run folder or in the workspace; after every event."""
    surround(
        os,
        "replace",
        before=lambda _source, target, **_: passed(f"before the file {target}"),
        after=lambda _source, target, **_: passed(f"after the file {target}"),
    )
    surround(EventLog, "publish", after=lambda _log, told: passed(f"after the event {type(told).__name__}"))


def mark_children(passed: Pass) -> None:
    """When a child has been started: Codex, git, the tests."""

    def started(_child: object, argv: Sequence[str], **_: object) -> None:
        passed(f"after the start of {Path(argv[0]).name} {argv[1]}")

    surround(subprocess.Popen, "__init__", after=started)


MARKS = {"journal": mark_journal, "wire": mark_wire, "files": mark_files, "children": mark_children}


@click.command()
@click.option("--kill-at", type=Point.parse, help="KIND:N")
@click.option("--fill-at", type=Point.parse, help="KIND:N")
@click.option("--note", type=click.Path(path_type=Path), required=True)
@click.argument("arguments", nargs=-1)
def drive(kill_at: Point | None, fill_at: Point | None, note: Path, arguments: tuple[str, ...]) -> None:
    passes = Passes(note, kill_at or fill_at, kill if kill_at else partial(fill, Path.cwd()))
    for kind, mark in MARKS.items():
        mark(passes.of(kind))
    sys.argv = ["codex-multi-role", *arguments]
    code = codex_multi_role()
    passes.write()
    sys.exit(code)


if __name__ == "__main__":
    drive()
