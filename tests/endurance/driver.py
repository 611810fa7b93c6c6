"""The orchestrator in a process of its own, which a fault strikes.

    python -m tests.endurance.driver --fault NAME [--at KIND:N] --note FILE -- run --goal …

Runs ``codex-multi-role`` in this process. It counts the places that the process passes, by kind; at the N-th of a kind
it writes to FILE which place that is, and does the fault's harm. A process that passes no such place leaves in FILE all
of that kind, or of every kind if there is no ``--at``, that it passed. SIGUSR1 makes it print where every thread is.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from codex_multi_role.cli.main import main as codex_multi_role
from tests.endurance.faults import FAULTS
from tests.endurance.points import Point


class Passes:
    """Counts by kind what is passed, and does ``harm`` to the process concerned at ``point``."""

    def __init__(self, note: Path, point: Point | None, harm: Callable[[int], None]) -> None:
        self._note = note
        self._point = point
        self._harm = harm
        self._has_struck = False
        self._lock = threading.Lock()
        self._passed: dict[str, list[str]] = {}

    def count(self, kind: str, place: str, pid: int = 0) -> bool:
        """Count one place; whether the fault strikes there."""
        with self._lock:
            passed = self._passed.setdefault(kind, [])
            passed.append(place)
            if self._point != Point(kind, len(passed)):
                return False
            self._note.write_text(json.dumps(place))
            self._has_struck = True
            self._harm(pid)
            return True

    def write(self) -> None:
        with self._lock:
            if not self._has_struck:
                self._note.write_text(json.dumps(self._passed))


@click.command()
@click.option("--fault", "name", type=click.Choice(list(FAULTS)), required=True)
@click.option("--at", type=Point.parse, help="KIND:N")
@click.option("--note", type=click.Path(path_type=Path), required=True)
@click.argument("arguments", nargs=-1)
def drive(name: str, at: Point | None, note: Path, arguments: tuple[str, ...]) -> None:
    faulthandler.register(signal.SIGUSR1)
    fault = FAULTS[name]
    if at:
        fault.prepare()
    passes = Passes(note, at, fault.harm)
    for kind in [at.kind] if at and at.kind in fault.marks else fault.marks:
        fault.marks[kind](partial(passes.count, kind))
    sys.argv = ["codex-multi-role", *arguments]
    code = codex_multi_role()
    passes.write()
    sys.exit(code)


if __name__ == "__main__":
    drive()
