"""One trial: a disturbed run, held against one that was left alone; one that stopped short is resumed undisturbed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.run_folder import RunFolder
from tests.chaos import driver, team
from tests.chaos.findings import wrong
from tests.chaos.profiles import PROFILES, Case, Profile
from tests.chaos.proxy import REPOSITORY, write_launcher
from tests.torture.evidence import Evidence
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.scenarios.scenario import git_there

STARTING_REQUESTS = 4
SLACK_SECONDS = 30.0
LOOK_SECONDS = 0.5
CALM = Case("calm", 0)


@dataclass
class Trial:
    """What came of one case. ``stop``, ``reason``: how and why the run stopped short, empty where it did not."""

    case: Case
    folder: Path
    stop: str = ""
    reason: str = ""
    wrong: list[str] = field(default_factory=list)


class Hanging(AssertionError):
    """A run that says nothing for longer than its deadlines allow."""


def longest_silence(profile: Profile) -> float:
    """The most seconds between two events: a process is replaced, its thread opened, a turn taken and ended."""
    starting = STARTING_REQUESTS * driver.START_SECONDS
    ending = driver.INTERRUPT_SECONDS + driver.REQUEST_SECONDS + driver.WRITE_SECONDS
    return starting + profile.turn_seconds + ending + SLACK_SECONDS


class Ground:
    """A folder with a team, and the disturbed Codex that its run starts."""

    def __init__(self, folder: Path, case: Case) -> None:
        folder.mkdir(parents=True)
        self.profile = PROFILES[case.profile]
        self.codex = find_codex(None, {})
        self.disturbed = write_launcher(folder / "codex", case, folder / "proxy", self.codex)
        self.team = team.new_team(folder, self.profile)
        self.run = RunFolder(self.team.runs / team.RUN_ID)
        self.output = folder / "output.txt"

    def start(self) -> int:
        """Run in the driver, disturbed; returns the exit code. Raises `Hanging`."""
        return self._process("tests.chaos.driver", *team.run_arguments(self.team, self.disturbed))

    def resume(self) -> int:
        """Go on with the real Codex."""
        return self._process("codex_multi_role", *team.resume_arguments(self.team, self.codex))

    def _process(self, *arguments: str) -> int:
        with self.output.open("a") as output:
            process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=REPOSITORY, stdout=output, stderr=output)
        with process:
            try:
                return self._wait(process)
            finally:
                process.kill()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        began, bound = time.time(), longest_silence(self.profile)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_SECONDS)
            if time.time() - max(began, self._last_told()) > bound:
                process.send_signal(signal.SIGUSR1)  # makes it tell where it hangs
                time.sleep(LOOK_SECONDS)
                raise Hanging(f"silent for {bound:g} s; output.txt says where")

    def _last_told(self) -> float:
        with suppress(OSError):
            return self.run.events_path.stat().st_mtime
        return 0.0

    def evidence(self, exit_code: int) -> Evidence:
        return Evidence.collect(self.run, self.team.workspace, exit_code, partial(git_there, self.team.workspace, None))


@contextmanager
def ground(folder: Path, case: Case) -> Iterator[Ground]:
    """Make ``folder`` and a team in it; whatever of the team still runs in the end is killed."""
    try:
        yield Ground(folder, case)
    finally:
        end(wait_until_gone(folder, 0))


def undisturbed(folder: Path) -> Evidence:
    """What a run leaves through a proxy that does nothing. Raises AssertionError where it cannot serve as a measure."""
    with ground(folder, CALM) as place:
        code = place.start()
        assert code == 0, place.output.read_text()
        assert not (found := wrong(place.run, code, place.output)), found
        return place.evidence(code)


def attempt(case: Case, folder: Path, expected: Evidence) -> Trial:
    """Disturb a run, and find what is wrong with it."""
    trial = Trial(case, folder)
    with ground(folder, case) as place:
        try:
            _carry_out(trial, place, expected)
        except (OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    return trial


def _carry_out(trial: Trial, place: Ground, expected: Evidence) -> None:
    code = place.start()
    trial.wrong += _found(place, code)
    record = place.run.record()
    if record["status"] != "succeeded":
        trial.stop, trial.reason = record["outcome"], record["reason"]
        if place.profile.bearable:
            trial.wrong.append(f"{trial.case.profile} is bearable, but the run stopped")
        code = place.resume()
        trial.wrong += [f"after resume: {each}" for each in _found(place, code)]
    # An answer that is lost on the wire is asked for once more: a repair turn, which the journal has and must have.
    trial.wrong += expected.differences(place.evidence(code), but=("journal",))


def _found(place: Ground, code: int) -> list[str]:
    left = [f"still there: {name}" for name in end(wait_until_gone(place.team.folder, 0))]
    return [*left, *wrong(place.run, code, place.output)]
