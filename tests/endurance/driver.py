"""The orchestrator in a process of its own, which a fault strikes.

    python -m tests.endurance.driver --fault NAME --mark KIND … [--at KIND:N] --note FILE -- run --goal …

Runs ``codex-multi-role`` in this process, or what a worker orders. It counts the places of each marked kind that the
process passes; at the N-th of a kind it writes to FILE which place that is, and does the fault's harm. A process that
passes no such place leaves in FILE all that it passed. SIGUSR1 makes it print where every thread is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from codex_multi_role.cli.main import main as codex_multi_role
from tests.endurance.bench import ATTEMPT
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
@click.option("--mark", "kinds", multiple=True)
@click.option("--at", type=Point.parse, help="KIND:N")
@click.option("--note", type=click.Path(path_type=Path), required=True)
@click.argument("arguments", nargs=-1)
def drive(name: str, kinds: Sequence[str], at: Point | None, note: Path, arguments: Sequence[str]) -> None:
    faulthandler.register(signal.SIGUSR1)
    fault = FAULTS[name]
    if at:
        fault.prepare()
    passes = Passes(note, at, fault.harm)
    for kind in kinds:
        fault.marks[kind](partial(passes.count, kind))
    code = carry_out(arguments)
    passes.write()
    sys.stdout.flush()
    if arguments[0] == ATTEMPT:
        os._exit(code)  # as such a process ends: a thread of its own never does
    sys.exit(code)


def carry_out(arguments: Sequence[str]) -> int:
    if arguments[0] == ATTEMPT:
        from codex_multi_role.extensions.machines.workers import attempt_process  # imports much that no run does

        return attempt_process.main(os.open(arguments[1], os.O_RDONLY))
    sys.argv = ["codex-multi-role", *arguments]
    return codex_multi_role()


if __name__ == "__main__":
    drive()
