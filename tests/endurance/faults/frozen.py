"""SIGSTOP to any one process below a run, as under a debugger; nobody ever sends SIGCONT.

``starts``  a program that the orchestrator starts, before it has done anything
``ends``    the same when it has done everything except end
``wire``    the Codex process of a message, whichever way that goes
``below``   a process that a child has started: Codex's sandbox and helpers, a tool command, the tests
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codex_multi_role.workspace import git
from tests.endurance.deadlines import lower, lower_deadlines
from tests.endurance.faults.fault import Fault
from tests.endurance.findings import HONEST_OUTCOMES, INTERRUPTED_TURN_ENDS, TURN_ENDS, WITHOUT_CODEX
from tests.endurance.marks import Mark, Passed, mark_wire, program
from tests.endurance.points import Point
from tests.endurance.scenarios import EVERY_CHILD

GIT_SECONDS = 4.0
LIMITS = {"idle_seconds": 4, "turn_seconds": 20}
LOOK_SECONDS = 0.002
LOOKS_BEFORE_EXEC = 5


def mark_programs(script: str) -> Mark:
    """A program would often have ended before a signal reached it, so ``script``, a shell around it, freezes itself."""

    def mark(passed: Passed) -> None:
        begin = subprocess.Popen.__init__

        def started(child: subprocess.Popen[bytes], argv: Sequence[str], *arguments: Any, **options: Any) -> None:
            if passed(program(argv)):
                argv = ["/bin/sh", "-c", script, "sh", *argv]
            begin(child, argv, *arguments, **options)

        vars(subprocess)["Popen"].__init__ = started

    return mark


def mark_below(passed: Passed) -> None:
    """Look all the time for processes that children of this one have started."""
    looks: dict[int, int] = {}

    def watch() -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_SECONDS):
            for child in children_of(os.getpid()):
                for pid, parent in descendants(child):
                    looks[pid] = looks.get(pid, 0) + 1
                    if becomes_known(pid, parent, looks[pid]):
                        looks[pid] = LOOKS_BEFORE_EXEC
                        passed(command(pid), pid)

    threading.Thread(target=watch, name="watch", daemon=True).start()


def becomes_known(pid: int, parent: int, looks: int) -> bool:
    """Whether it is known what the process is: at first a new one is a copy of its parent, until it runs a program."""
    return looks == LOOKS_BEFORE_EXEC or (looks < LOOKS_BEFORE_EXEC and command(pid) != command(parent))


def descendants(pid: int) -> Iterator[tuple[int, int]]:
    """The descendants of ``pid``, each with its parent."""
    for child in children_of(pid):
        yield child, pid
        yield from descendants(child)


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")[:300]
    return ""


class Frozen(Fault):
    """On a machine where nothing was run yet, so that the databases of Codex homes are made, too."""

    name = "frozen"
    scenarios = (EVERY_CHILD,)
    marks: Mapping[str, Mark] = {
        "starts": mark_programs('kill -STOP $$; exec "$@"'),
        "ends": mark_programs('"$@"; kill -STOP $$'),
        "wire": mark_wire,
        "below": mark_below,
    }
    honest_outcomes = HONEST_OUTCOMES | WITHOUT_CODEX
    turn_ends = TURN_ENDS | INTERRUPTED_TURN_ENDS
    not_compared = ("journal", "history")  # how often something was tried until it went well
    is_paid_once = False
    process_seconds = 240.0  # far more than all deadlines of the run together: what takes longer hangs
    jobs = 4  # a frozen run mostly waits

    def prepare(self) -> None:
        lower_deadlines()
        lower(git, "GIT_SECONDS", GIT_SECONDS)

    def harm(self, pid: int) -> None:
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def limits(self, _point: Point) -> Mapping[str, float]:
        return LIMITS

    def environment(self, folder: Path) -> Mapping[str, str]:
        return {"XDG_CACHE_HOME": str(folder / "cache")}
