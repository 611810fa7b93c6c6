"""One trial: a run that is killed at a point, resumed until it ends, and held against one that was left alone."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.playbook import Ask, Playbook, PlaybookServer
from codex_multi_role.run_folder import RunFolder
from tests.teams import TeamFolder, read
from tests.torture.evidence import Evidence, inconsistencies
from tests.torture.ledger import Turn, audit, in_flight, recorded_turns
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.points import Point
from tests.torture.team import RUN_ID, new_team, resume_arguments, run_arguments

REPOSITORY = Path(__file__).parents[2]
PROCESS_SECONDS = 60.0
LEAVING_SECONDS = 10.0
MOST_RESUMES = 3
KILLED = -9
ENDED = ("succeeded", "ended")


@dataclass(frozen=True)
class Undisturbed:
    """What a run that was left alone passed, left, asked for and took."""

    passed: dict[str, list[str]]
    evidence: Evidence
    due: Counter[Ask]
    seconds: float


@dataclass
class Trial:
    """What came of one kill. ``place``: where it was; empty when the run ended before it. ``leaving``: seconds that the
    killed run's processes took to leave. ``anew``: the run was killed before it had a ``run.json``.
    """

    point: Point
    folder: Path
    place: str = ""
    leaving: float = 0.0
    resumes: int = 0
    anew: bool = False
    twice: int = 0
    wrong: list[str] = field(default_factory=list)


class Ground:
    """A folder with a team, and the playbook server that all processes of the team's run ask."""

    def __init__(self, folder: Path, server: PlaybookServer, team: TeamFolder) -> None:
        self.server, self.team = server, team
        self.note = folder / "note.json"
        self.output = folder / "output.txt"
        self.run_id = RUN_ID

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.team.runs / self.run_id)

    def start(self, kill_at: Point | None = None) -> int:
        """Run in the driver; returns its exit code."""
        kill = ["--kill-at", str(kill_at)] if kill_at else []
        driver = ["tests.torture.driver", "--note", str(self.note), *kill, "--"]
        return self._process(*driver, *run_arguments(self.team, self.server.base_url, self.run_id))

    def resume(self) -> int:
        return self._process("codex_multi_role", *resume_arguments(self.team, self.run_id))

    def _process(self, *arguments: str) -> int:
        with self.output.open("a") as output:
            command = [sys.executable, "-m", *arguments]
            return subprocess.run(
                command, cwd=REPOSITORY, stdout=output, stderr=output, timeout=PROCESS_SECONDS, check=False
            ).returncode

    def evidence(self, exit_code: int) -> Evidence:
        return Evidence.collect(self.run, self.team.workspace, exit_code)


@contextmanager
def ground(folder: Path) -> Iterator[Ground]:
    """Make ``folder`` and a team in it; whatever of the team still runs in the end is killed."""
    folder.mkdir(parents=True)
    team = new_team(folder)
    with PlaybookServer(Playbook.load(team.playbook)) as server:
        try:
            yield Ground(folder, server, team)
        finally:
            end(wait_until_gone(folder, 0))


def undisturbed(folder: Path) -> Undisturbed:
    """A run that is left alone. Raises AssertionError where it cannot serve as a measure."""
    with ground(folder) as place:
        began = time.monotonic()
        code = place.start()
        seconds = time.monotonic() - began
        assert code == 0, place.output.read_text()
        assert not inconsistencies(place.run, 0)
        due = place.server.requests
        # The names of recorded steps are not promised to anybody; here they must be the ones we read.
        assert recorded_turns(place.run.journal_path) == {Turn.of(ask) for ask in due}
        return Undisturbed(read(place.note), place.evidence(code), due, seconds)


def attempt(point: Point, folder: Path, expected: Undisturbed, at_once: bool = False) -> Trial:
    """Kill a run at ``point``, resume it, and find what is wrong with what it left.

    ``at_once``: resume while processes of the killed run may still be leaving.
    """
    trial = Trial(point, folder)
    with ground(folder) as place:
        try:
            _carry_out(trial, place, expected, at_once)
        except (subprocess.TimeoutExpired, OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    return trial


def _carry_out(trial: Trial, place: Ground, expected: Undisturbed, at_once: bool) -> None:
    code = place.start(trial.point)
    free = None
    if code == KILLED:
        trial.place = read(place.note)
        if not at_once:
            _see_them_leave(trial)
        free = in_flight(expected.due, recorded_turns(place.run.journal_path))
        code = _go_on(trial, place)
    trial.wrong += expected.evidence.differences(place.evidence(code))
    trial.wrong += inconsistencies(place.run, 0 if trial.anew else trial.resumes)
    trial.wrong += [f"still there: {name}" for name in end(wait_until_gone(trial.folder, 0))]
    account = audit(expected.due, place.server.requests, free)
    trial.wrong += account.wrong
    trial.twice = account.twice


def _see_them_leave(trial: Trial) -> None:
    began = time.monotonic()
    left = wait_until_gone(trial.folder, LEAVING_SECONDS)
    trial.leaving = time.monotonic() - began
    trial.wrong += [f"after {LEAVING_SECONDS:g} s still there: {name}" for name in end(left)]


def _go_on(trial: Trial, place: Ground) -> int:
    """Resume the run until it ends; returns the last exit code. One without ``run.json`` is started anew."""
    if not place.run.record_path.exists():
        trial.anew = True
        trial.wrong += [f"paid for before there was a run.json: {ask}" for ask in place.server.requests]
        place.run_id = f"{RUN_ID}-anew"
        return place.start()
    code = KILLED
    while (trial.resumes < MOST_RESUMES and place.run.record()["status"] not in ENDED) or not trial.resumes:
        trial.resumes += 1
        code = place.resume()
    return code
