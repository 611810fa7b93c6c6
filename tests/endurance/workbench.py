"""Where a fault strikes: a folder with a scenario's team, and the model that all processes of the run ask."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.playbook import Playbook, PlaybookServer
from codex_multi_role.run_folder import RunFolder
from tests.endurance.deadlines import longest_silence
from tests.endurance.evidence import Evidence
from tests.endurance.faults import Fault
from tests.endurance.points import Point
from tests.endurance.scenarios import Scenario
from tests.support.disks import REPOSITORY, Disk, git_in, small_disk
from tests.support.leftovers import end, wait_until_gone
from tests.support.preloaded import started
from tests.support.teams import LIMITS, TeamFolder, read

ENDED = ("succeeded", "ended")
LOOK_SECONDS = 0.5


class Hanging(AssertionError):
    """A process that takes longer than its deadlines allow."""


class Workbench:
    """``run_id`` changes when a run is started again. ``disk``: one of its own that the team and its runs lie on.

    ``silence_seconds``: the most that may pass between two events.
    """

    def __init__(
        self,
        fault: Fault,
        scenario: Scenario,
        folder: Path,
        server: PlaybookServer,
        team: TeamFolder,
        disk: Disk | None,
    ) -> None:
        self.fault, self.scenario, self.folder, self.server, self.team = fault, scenario, folder, server, team
        self.disk = disk
        self.run_id = "endurance"
        self.silence_seconds = longest_silence(LIMITS)
        self.processes = 0
        self._note = folder / "note.json"
        self._point: Point | None = None

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.team.runs / self.run_id)

    @property
    def output(self) -> Path:
        """What the latest process printed."""
        return self.folder / f"output-{self.processes}.txt"

    def start(self, point: Point | None = None) -> int:
        """Run, struck at ``point``; returns the exit code. Raises `Hanging`."""
        return self._drive(self.scenario.run_arguments(self.team, self.server.base_url, self.run_id), point)

    def resume(self, point: Point | None = None) -> int:
        """As `start`."""
        return self._drive(self.scenario.resume_arguments(self.team, self.run_id), point)

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

    def has_ended(self) -> bool:
        return self.run.record_path.exists() and self.run.record()["status"] in ENDED

    def evidence(self, exit_code: int) -> Evidence:
        git = partial(git_in, self.team.workspace, self.disk)
        return Evidence.collect(self.run, self.team.workspace, exit_code, git, self.scenario.racers)

    def _drive(self, arguments: list[str], point: Point | None) -> int:
        self.processes += 1
        self._point = point
        self._note.unlink(missing_ok=True)
        at = ["--at", str(point)] if point else []
        codex = self.fault.codex(self.folder, point) if point else find_codex(None, {})
        driver = ["tests.endurance.driver", "--fault", self.fault.name, "--note", str(self._note), *at]
        command = [sys.executable, "-m", *driver, "--", *arguments, "--codex-bin", str(codex)]
        with self.output.open("w") as output:
            process = started(
                self.disk.inside(*command) if self.disk else command,
                cwd=REPOSITORY,
                env=self._environment(),
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
            if now - began > self.fault.process_seconds or now - max(began, self._last_told()) > self.silence_seconds:
                process.send_signal(signal.SIGUSR1)  # makes it tell where it hangs
                time.sleep(LOOK_SECONDS)
                raise Hanging(
                    f"no end {now - began:.0f} s after its start; struck: {self.struck}; {self.output.name} says where"
                )

    def _last_told(self) -> float:
        with suppress(OSError):
            return self.run.events_path.stat().st_mtime
        return 0.0


@contextmanager
def workbench(fault: Fault, scenario: Scenario, folder: Path, point: Point | None = None) -> Iterator[Workbench]:
    """Make ``folder`` and a team in it, for a run that is struck at ``point``; what still runs in the end is killed.

    Raises `OSError` where the system gives no disk of one's own, and the fault needs one.
    """
    folder.mkdir(parents=True)
    limits = fault.limits(point) if point else LIMITS
    with ExitStack() as stack:
        disk = None
        if point and fault.disk_megabytes:
            (folder / "disk").mkdir()
            disk = stack.enter_context(small_disk(folder / "disk", fault.disk_megabytes))
        team = scenario.new_team(disk.folder if disk else folder, disk, limits)
        server = stack.enter_context(PlaybookServer(Playbook.load(team.playbook)))
        stack.callback(lambda: end(wait_until_gone(folder, 0)))
        bench = Workbench(fault, scenario, folder, server, team, disk)
        bench.silence_seconds = longest_silence(limits)
        yield bench
