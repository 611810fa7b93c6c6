"""One trial: a run one of whose children is frozen, resumed if it stopped short, and held against one left alone."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.events import RoleRestarted, RunEnded, TestsEnded, TurnEnded, Warning
from tests.chaos.findings import HONEST_REASONS, wrong
from tests.frozen.scenario import TEAM
from tests.support.teams import read
from tests.torture.evidence import Evidence
from tests.torture.ground import Ground, ground
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.points import Point

TURNS = 4
UNDER_WAY = "not in controller_state.json"
"""Of an ask that the run stopped in the middle of, after its turn: it is when that goes on."""
HONEST = HONEST_REASONS | {"check_failed", "storage_failed"}


class ColdGround(Ground):
    """On a machine where nothing was run yet, so that the databases of Codex homes are made, too."""

    driver = ("tests.frozen.driver", "--freeze-at")
    process_seconds = 240.0
    """Far more than all deadlines of the run together, on a machine that is busy, too: what takes longer hangs."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "XDG_CACHE_HOME": str(self.folder / "cache")}


@dataclass
class Trial:
    """What came of freezing the child at ``point``. ``what``: its program; empty when the run ended before.

    ``seconds``: how long the run took; ``ended_by``: what it says of that, deadline by deadline; ``stop``: the outcome
    of a run that stopped short.
    """

    point: Point
    folder: Path
    what: str = ""
    seconds: float = 0.0
    ended_by: list[str] = field(default_factory=list)
    stop: str = ""
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Undisturbed:
    """What a run that was left alone passed, by kind, what it left, and how long it took."""

    passed: dict[str, list[str]]
    evidence: Evidence
    seconds: float


def undisturbed(folder: Path) -> Undisturbed:
    """A run that is left alone. Raises AssertionError where it cannot serve as a measure."""
    with ground(TEAM, folder, ColdGround) as place:
        began = time.monotonic()
        code = place.start()
        seconds = time.monotonic() - began
        assert code == 0, place.output.read_text()
        assert not (found := wrong(place.run, code, place.output)), found
        assert place.run.record()["totals"]["turns"] == TURNS
        return Undisturbed(read(place.note), place.evidence(code), seconds)


def attempt(point: Point, folder: Path, expected: Undisturbed) -> Trial:
    """Freeze the child at ``point``, and find what is wrong with how the run ended and what it left."""
    trial = Trial(point, folder)
    with ground(TEAM, folder, ColdGround) as place:
        try:
            _carry_out(trial, place, expected)
        except (subprocess.TimeoutExpired, OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    return trial


def _carry_out(trial: Trial, place: ColdGround, expected: Undisturbed) -> None:
    began = time.monotonic()
    try:
        code = place.start(trial.point)
    finally:
        trial.seconds = time.monotonic() - began
        trial.what = str(read(place.note)) if place.note.exists() else ""
    trial.wrong += [each for each in _found(place, code) if not each.startswith(UNDER_WAY)]
    trial.ended_by = list(_ended_by(place.run))
    record = place.run.record()
    if record["status"] != "succeeded":
        trial.stop = record["outcome"]
        code = place.resume()
        trial.wrong += [f"after resume: {each}" for each in _found(place, code)]
    trial.wrong += _comparable(expected.evidence).differences(_comparable(place.evidence(code)))


def _found(place: ColdGround, code: int) -> list[str]:
    left = [f"still there: {name}" for name in end(wait_until_gone(place.folder, 0))]
    return [*left, *wrong(place.run, code, place.output, HONEST)]


def _comparable(evidence: Evidence) -> Evidence:
    """Without how often something was tried until it went well."""
    return replace(evidence, journal={}, history={})


def _ended_by(run: RunFolder) -> Iterator[str]:
    """What the run's events say of deadlines that passed."""
    for event in read_events(run.events_path):
        match event:
            case RoleRestarted(role, reason):
                yield f"{role} restarted: {reason}"
            case TurnEnded(role=role, status=status, reason=reason) if status != "completed":
                yield f"{role}'s turn: {reason}"
            case TestsEnded(status=status) if status != "passed":
                yield f"tests: {status}"
            case RunEnded(status=status, reason=reason) if status != "succeeded":
                yield f"run: {reason}"
            case Warning(message):
                yield f"warning: {message}"
    for result in map(read, sorted(run.path.glob("checks/*/result.json"))):
        if result["status"] != "ok":
            yield f"check: {result['status']}, {result['reason']}"
