"""One trial: a run that is killed, resumed until it ends, and held against one that was left alone."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.teams import read
from tests.torture.ground import Ground, Undisturbed, ground
from tests.torture.ledger import audit, in_flight
from tests.torture.leftovers import end, wait_until_gone
from tests.torture.points import Kills, Point
from tests.torture.scenarios import Scenario

LEAVING_SECONDS = 10.0
MOST_RESUMES = 3
KILLED = -9
ENDED = ("succeeded", "ended")


@dataclass
class Trial:
    """What came of ``kills``. ``places``: where they were; fewer when a process ended before its point.

    ``leaving``: seconds that the killed run's processes took to leave. ``anew``: the run was killed before it had a
    ``run.json``. ``free``: how often a turn in flight may be paid for again, by its place in the journal.
    """

    scenario: Scenario
    kills: Kills
    folder: Path
    places: list[str] = field(default_factory=list)
    leaving: float = 0.0
    resumes: int = 0
    killed_resumes: int = 0
    anew: int = 0
    free: Counter[int] = field(default_factory=Counter)
    twice: int = 0
    on_full_disk: bool = False
    wrong: list[str] = field(default_factory=list)


def attempt(scenario: Scenario, kills: Kills, folder: Path, expected: Undisturbed, at_once: bool = False) -> Trial:
    """Kill a run, and what resumes it, at ``kills``, resume it to its end, and find what is wrong with what it left.

    ``at_once``: resume while processes of the killed run may still be leaving.
    """
    trial = Trial(scenario, kills, folder)
    with ground(scenario, folder, Ground) as place:
        try:
            code = _end_of(trial, place, at_once)
            trial.wrong += expected.evidence.differences(place.evidence(code))
            trial.wrong += place.inconsistencies(range(trial.resumes - trial.killed_resumes, trial.resumes + 1))
            trial.wrong += [f"still there: {name}" for name in end(wait_until_gone(trial.folder, 0))]
            count_what_was_paid(trial, place, expected)
        except (subprocess.TimeoutExpired, OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    return trial


def count_what_was_paid(trial: Trial, place: Ground, expected: Undisturbed) -> None:
    """Hold what the model was asked against what an undisturbed run asks."""
    account = audit(expected.due, place.server.requests, expected.turns, trial.free)
    trial.wrong += account.wrong
    trial.twice = account.twice


def _end_of(trial: Trial, place: Ground, at_once: bool) -> int:
    """Carry out the kills, then resume until the run has ended; returns the last exit code."""
    code = place.start(trial.kills[0])
    for next_kill in (*trial.kills[1:], *[None] * MOST_RESUMES):
        if code == KILLED:
            _look_at_the_dead(trial, place, at_once)
        elif place.run.record()["status"] in ENDED:
            break
        code = go_on(trial, place, next_kill)
    return code


def _look_at_the_dead(trial: Trial, place: Ground, at_once: bool) -> None:
    trial.places.append(read(place.note))
    if not at_once:
        began = time.monotonic()
        left = wait_until_gone(trial.folder, LEAVING_SECONDS)
        trial.leaving = max(trial.leaving, time.monotonic() - began)
        trial.wrong += [f"after {LEAVING_SECONDS:g} s still there: {name}" for name in end(left)]
    unfinished = in_flight(place.run)
    trial.free |= unfinished
    if len(unfinished) > trial.scenario.concurrency:
        trial.wrong.append(f"{len(unfinished)} turns were in flight at once")


def go_on(trial: Trial, place: Ground, kill_at: Point | None) -> int:
    """Resume the run; one without ``run.json`` is started anew. ``kill_at`` as in `Ground.start`."""
    if not place.run.record_path.exists():
        trial.anew += 1
        trial.wrong += [f"paid for before there was a run.json: {ask}" for ask in place.server.requests]
        place.run_id = f"{place.run_id}-anew"
        return place.start(kill_at)
    trial.resumes += 1
    code = place.resume(kill_at)
    trial.killed_resumes += code == KILLED
    return code
