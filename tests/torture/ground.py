"""Where a run is tortured: a folder with a scenario's team, and the model that all processes of the run ask."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from codex_multi_role.playbook import AnswerKey, Playbook, PlaybookServer
from codex_multi_role.run_folder import RunFolder
from tests.support.disks import Disk, small_disk
from tests.support.teams import TeamFolder, read
from tests.torture.consistency import inconsistencies
from tests.torture.evidence import Evidence
from tests.torture.ledger import Turn, recorded_steps, turns_by_place
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.points import Point
from tests.torture.scenarios import Scenario
from tests.torture.scenarios.scenario import git_there

REPOSITORY = Path(__file__).parents[2]
RUN_ID = "tortured"


class Ground:
    """``run_id`` changes when a run is started anew. ``disk``: one of its own that the team and its runs lie on.

    ``driver``: what runs it, and the option that takes a point.
    """

    driver = ("tests.torture.driver", "--kill-at")
    process_seconds = 60.0

    def __init__(
        self, scenario: Scenario, folder: Path, server: PlaybookServer, team: TeamFolder, disk: Disk | None = None
    ) -> None:
        self.scenario, self.folder, self.server, self.team = scenario, folder, server, team
        self.note = folder / "note.json"
        self.output = folder / "output.txt"
        self.run_id = RUN_ID
        self.disk = disk

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.team.runs / self.run_id)

    def start(self, kill_at: Point | None = None) -> int:
        """Run; returns the exit code."""
        return self._drive(self.scenario.run_arguments(self.team, self.server.base_url, self.run_id), kill_at)

    def resume(self, kill_at: Point | None = None) -> int:
        return self._drive(self.scenario.resume_arguments(self.team, self.run_id), kill_at)

    def _drive(self, arguments: list[str], point: Point | None) -> int:
        """Where there is a disk of its own it is full from ``point`` on."""
        module, option = self.driver
        harm = ["--fill-at" if self.disk else option, str(point)] if point else []
        command = [sys.executable, "-m", module, "--note", str(self.note), *harm, "--", *arguments]
        if self.disk:
            command = self.disk.inside(*command)
        with self.output.open("a") as output:
            return subprocess.run(
                command,
                cwd=REPOSITORY,
                env=self.environment(),
                stdout=output,
                stderr=output,
                timeout=self.process_seconds,
                check=False,
            ).returncode

    def environment(self) -> dict[str, str]:
        """What the orchestrator gets."""
        return {**os.environ, "PYTHONPATH": str(REPOSITORY)}  # with a disk of its own it begins in another folder

    def evidence(self, exit_code: int) -> Evidence:
        git = partial(git_there, self.team.workspace, self.disk)
        return Evidence.collect(self.run, self.team.workspace, exit_code, git)

    def inconsistencies(self, resumes: range) -> list[str]:
        return inconsistencies(self.run, resumes, in_order=self.scenario.concurrency == 1)


AnyGround = TypeVar("AnyGround", bound=Ground)


@contextmanager
def ground(scenario: Scenario, folder: Path, kind: type[AnyGround], disk_megabytes: int = 0) -> Iterator[AnyGround]:
    """Make ``folder`` and a team in it; whatever of the team still runs in the end is killed.

    With ``disk_megabytes`` the team lies on a disk of that size. Raises `OSError` where the system gives none.
    """
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        disk = None
        if disk_megabytes:
            (folder / "disk").mkdir()
            disk = stack.enter_context(small_disk(folder / "disk", disk_megabytes))
        team = scenario.new_team(disk.folder if disk else folder, disk)
        server = stack.enter_context(PlaybookServer(Playbook.load(team.playbook)))
        stack.callback(lambda: end(wait_until_gone(folder, 0)))
        yield kind(scenario, folder, server, team, disk)


@dataclass(frozen=True)
class Undisturbed:
    """What a run that was left alone passed, left, asked for and took; ``turns`` by their places in the journal."""

    passed: dict[str, list[str]]
    evidence: Evidence
    due: Counter[AnswerKey]
    turns: dict[int, Turn]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(places) for kind, places in self.passed.items()}


def undisturbed(scenario: Scenario, folder: Path) -> Undisturbed:
    """A run that is left alone. Raises AssertionError where it cannot serve as a measure."""
    with ground(scenario, folder, Ground) as place:
        began = time.monotonic()
        code = place.start()
        seconds = time.monotonic() - began
        assert code == 0, place.output.read_text()
        assert not place.inconsistencies(range(1))
        due, turns = place.server.requests, turns_by_place(place.run)
        assert set(turns.values()) == {Turn(ask.role, ask.visit, ask.repair) for ask in due}
        assert turns.keys() <= recorded_steps(place.run.journal_path).keys()
        return Undisturbed(read(place.note), place.evidence(code), due, turns, seconds)
