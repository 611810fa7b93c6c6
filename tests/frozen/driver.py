"""The orchestrator in a process of its own, one of whose children is frozen, as under a debugger.

    python -m tests.frozen.driver [--freeze-at KIND:N] --note FILE -- run --goal …

Runs ``codex-multi-role`` in this process, with less patience than it has, and sends SIGSTOP to the N-th child of a kind
(`tests.frozen.points`); nobody ever sends SIGCONT. FILE says which it was, or, without a point, all there were.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from codex_multi_role.cli.main import main as codex_multi_role
from codex_multi_role.codex.transport import AppServerTransport
from codex_multi_role.codex.wire_log import WireLog
from codex_multi_role.workspace import git
from tests.chaos.driver import lower_deadlines
from tests.frozen.points import KINDS, parse
from tests.torture.driver import surround
from tests.torture.points import Point

GIT_SECONDS = 4.0
LOOK_SECONDS = 0.002
LOOKS_BEFORE_EXEC = 5
AROUND = {"starts": 'kill -STOP $$; exec "$@"', "ends": '"$@"; kill -STOP $$'}


class Freezer:
    """Counts by kind what is passed; the process at ``at`` is frozen."""

    def __init__(self, note: Path, at: Point | None) -> None:
        self._note = note
        self._at = at
        self._lock = threading.Lock()
        self._passed: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def is_at(self, kind: str, what: str) -> bool:
        """Count ``what``; whether it is the one to be frozen."""
        with self._lock:
            self._passed[kind].append(what)
            if self._at != Point(kind, len(self._passed[kind])):
                return False
            self._note.write_text(json.dumps(what))
            return True

    def passed(self, kind: str, pid: int, what: str) -> None:
        if self.is_at(kind, what):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def write(self) -> None:
        if self._at is None:
            self._note.write_text(json.dumps(self._passed))


def mark_children(freezer: Freezer) -> None:
    """A program would often have ended before a signal reached it: a shell around it freezes itself."""
    begin = subprocess.Popen.__init__

    def started(child: subprocess.Popen[bytes], argv: Sequence[str], *arguments: Any, **options: Any) -> None:
        what = f"{Path(argv[0]).name} {argv[1]}"
        for kind, script in AROUND.items():
            if freezer.is_at(kind, what):
                argv = ["/bin/sh", "-c", script, "sh", *argv]
                break
        begin(child, argv, *arguments, **options)

    vars(subprocess)["Popen"].__init__ = started


def mark_wire(freezer: Freezer) -> None:
    pids: dict[WireLog, int] = {}

    def started(transport: AppServerTransport) -> None:
        pids[transport._log] = transport.pid

    def sent(transport: AppServerTransport, message: Mapping[str, Any]) -> None:
        freezer.passed("wire", transport.pid, f"codex app-server after {message.get('method', 'an answer')} to it")

    def received(log: WireLog, direction: str, line: bytes) -> None:
        if direction == "in" and log in pids:
            told = json.loads(line).get("method", "an answer")
            freezer.passed("wire", pids[log], f"codex app-server after {told} from it")

    surround(AppServerTransport, "start", after=started)
    surround(AppServerTransport, "_write", after=sent)
    surround(WireLog, "write", after=received)


class Watch(threading.Thread):
    """Looks all the time for processes that children of this one have started."""

    def __init__(self, freezer: Freezer) -> None:
        super().__init__(name="watch", daemon=True)
        self._freezer = freezer
        self._over = threading.Event()
        self._looks: dict[int, int] = {}

    def run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for child in children_of(os.getpid()):
                for pid, parent in below(child):
                    self._look_at(pid, parent)

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _look_at(self, pid: int, parent: int) -> None:
        """A new process is at first a copy of its parent; what it becomes is frozen."""
        looks = self._looks[pid] = self._looks.get(pid, 0) + 1
        if looks > LOOKS_BEFORE_EXEC or (looks == LOOKS_BEFORE_EXEC) == (command(pid) != command(parent)):
            return
        self._looks[pid] = LOOKS_BEFORE_EXEC + 1
        self._freezer.passed("below", pid, command(pid))


def below(pid: int) -> Iterator[tuple[int, int]]:
    """The descendants of ``pid``, each with its parent."""
    for child in children_of(pid):
        yield child, pid
        yield from below(child)


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


@click.command()
@click.option("--freeze-at", type=parse, help="KIND:N")
@click.option("--note", type=click.Path(path_type=Path), required=True)
@click.argument("arguments", nargs=-1)
def drive(freeze_at: Point | None, note: Path, arguments: tuple[str, ...]) -> None:
    faulthandler.register(signal.SIGUSR1)
    lower_deadlines()
    git.GIT_SECONDS = GIT_SECONDS
    freezer = Freezer(note, freeze_at)
    mark_children(freezer)
    mark_wire(freezer)
    watch = Watch(freezer)
    watch.start()
    sys.argv = ["codex-multi-role", *arguments]
    code = codex_multi_role()
    watch.stop()
    freezer.write()
    sys.exit(code)


if __name__ == "__main__":
    drive()
