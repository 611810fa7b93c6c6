"""What a fault strikes: processes one after the other, until their work is done; and what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.playbook import AnswerKey
from tests.endurance.deadlines import longest_silence
from tests.endurance.evidence import Evidence
from tests.endurance.faults.fault import Fault
from tests.endurance.findings import wrong_output
from tests.endurance.ledger import Turn
from tests.endurance.points import Point, Points
from tests.endurance.scenarios.scenario import Struck
from tests.support.disks import REPOSITORY, Disk
from tests.support.preloaded import started
from tests.support.teams import LIMITS, read

ATTEMPT = "attempt"
"""The command of the driver that does what a worker orders, in a file."""
LOOK_SECONDS = 0.5


class Hanging(AssertionError):
    """A process that takes longer than its deadlines allow."""


@dataclass(frozen=True)
class Undisturbed:
    """What processes that nothing strikes pass, leave, ask for and take; ``turns`` by their places in the journal."""

    passed: dict[str, list[str]]
    evidence: Evidence
    due: Counter[AnswerKey]
    turns: dict[int, Turn]
    seconds: float


@dataclass
class Trial:
    """What striking at ``points`` did. ``places``: where the fault struck; fewer if a process ended before its point.

    ``stops``: why a process stopped short, and ``ended_by`` what the first one reports of deadlines that passed.
    ``leaving``: seconds that the killed run's processes took to leave. ``restarts``: the run had no ``run.json`` yet.
    ``struck_resumes``: of the ``resumes``, those that may not be in ``run.json``. ``free``: how often a turn in flight
    may be paid for again, by its place in the journal; ``twice``: how many were.
    """

    fault: Fault
    scenario: Struck
    points: Points
    folder: Path
    places: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    ended_by: list[str] = field(default_factory=list)
    seconds: float = 0.0
    leaving: float = 0.0
    resumes: int = 0
    struck_resumes: int = 0
    restarts: int = 0
    free: Counter[int] = field(default_factory=Counter)
    twice: int = 0
    wrong: list[str] = field(default_factory=list)


class Bench(ABC):
    """``disk``: one of its own, on which the work lies. ``silence_seconds``: the most between two events."""

    def __init__(self, fault: Fault, scenario: Struck, folder: Path, disk: Disk | None = None) -> None:
        self.fault, self.folder, self.disk = fault, folder, disk
        self.kinds: Sequence[str] = [kind for kind in fault.marks if kind in scenario.kinds]
        self.silence_seconds = longest_silence(LIMITS)
        self.processes = 0
        self._note = folder / "note.json"
        self._point: Point | None = None

    @abstractmethod
    def go_on(self, trial: Trial, point: Point | None) -> int:
        """Begin, or continue; struck at ``point``. Returns the exit code. Raises `Hanging`."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether all is done."""

    @abstractmethod
    def evidence(self, exit_code: int) -> Evidence:
        """What is left in the end."""

    def look(self, trial: Trial, point: Point | None, code: int) -> None:
        """Judge what a process left; it ended with the exit code of a fault that kills, or by itself."""
        if not (self.struck and code == self.fault.exit_code):
            trial.wrong += wrong_output(self.output, code)

    def bill(self) -> tuple[Counter[AnswerKey], dict[int, Turn]]:
        """What was asked for, and the turns that were taken, where nothing struck."""
        return Counter(), {}

    def account(self, trial: Trial, expected: Undisturbed) -> list[str]:
        """What is wrong with what was paid for, held against the bill."""
        return []

    def passed(self) -> dict[str, list[str]]:
        """The places that the latest process passed, which nothing struck."""
        places: dict[str, list[str]] = read(self._note)
        return places

    @property
    def struck(self) -> str:
        """Where the latest process was struck, or how; empty if it ended before its point."""
        if self._point is None:
            return ""
        noted = read(self._note) if self._note.exists() else {}
        return noted if isinstance(noted, str) else self.fault.strike(self.folder, self._point)

    @property
    def output(self) -> Path:
        """What the latest process printed."""
        return self.folder / f"output-{self.processes}.txt"

    def drive(self, arguments: Sequence[str], point: Point | None, folder: Path = REPOSITORY) -> int:
        """Let the driver do what ``arguments`` say."""
        self.processes += 1
        self._point = point
        self._note.unlink(missing_ok=True)
        at = ["--at", str(point)] if point else []
        kinds = [point.kind] if point and point.kind in self.kinds else self.kinds
        marks = [part for kind in kinds for part in ("--mark", kind)]
        driver = ["tests.endurance.driver", "--fault", self.fault.name, "--note", str(self._note), *at, *marks]
        command = [sys.executable, "-m", *driver, "--", *arguments]
        with self.output.open("w") as output:
            process = started(
                self.disk.inside(*command) if self.disk else command,
                cwd=folder,
                env=self._environment(),
                stdin=subprocess.PIPE,  # at its end, a worker's process stops
                stdout=output,
                stderr=output,
            )
        with process:
            try:
                return self._wait(process)
            finally:
                process.kill()

    def _environment(self) -> dict[str, str]:
        path = {"PYTHONPATH": str(REPOSITORY)}  # with a disk of its own it starts in another folder
        return {**os.environ, **path, **self.fault.environment(self.folder)}

    def _wait(self, process: subprocess.Popen[str]) -> int:
        began = time.time()
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_SECONDS)
            now = time.time()
            if now - began > self.fault.process_seconds or now - max(began, self.last_told()) > self.silence_seconds:
                process.send_signal(signal.SIGUSR1)  # makes it tell where it hangs
                time.sleep(LOOK_SECONDS)
                raise Hanging(
                    f"no end {now - began:.0f} s after its start; struck: {self.struck}; {self.output.name} says where"
                )

    def last_told(self) -> float:
        """When the work told an event."""
        return 0.0
