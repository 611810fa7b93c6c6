"""One trial: a run that a fault strikes, resumed until it has ended, and held against one that was left alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codex_multi_role.errors import ExitCode, RunStatus
from codex_multi_role.playbook import AnswerKey
from codex_multi_role.run_folder import RunFolder, read_events
from codex_multi_role.run_folder.events import RoleRestarted, RunEnded, TestsEnded, TurnEnded, Warning
from codex_multi_role.run_folder.owner import read_owner
from tests.endurance.evidence import Evidence
from tests.endurance.faults import Fault
from tests.endurance.findings import TURN_ENDS, disordered, findings, wrong_output
from tests.endurance.ledger import Turn, audit, in_flight, recorded_steps, turns_by_place
from tests.endurance.points import Point, Points
from tests.endurance.scenarios import Scenario
from tests.endurance.workbench import Workbench, workbench
from tests.support.leftovers import end, wait_until_gone
from tests.support.teams import read

LEAVING_SECONDS = 10.0
"""For the processes of a run that was killed: nothing of it is left that could end them."""


@dataclass(frozen=True)
class Undisturbed:
    """What a run that nothing strikes passed, left, asked for and took; ``turns`` by their places in the journal."""

    passed: dict[str, list[str]]
    evidence: Evidence
    due: Counter[AnswerKey]
    turns: dict[int, Turn]
    seconds: float


def undisturbed(fault: Fault, scenario: Scenario, folder: Path) -> Undisturbed:
    """Run the scenario as ``fault`` does, but let nothing strike. Raises AssertionError if it cannot be a measure."""
    with workbench(fault, scenario, folder) as bench:
        began = time.monotonic()
        code = bench.start()
        seconds = time.monotonic() - began
        assert code == 0, bench.output.read_text()
        found = [*wrong_output(bench.output, code), *findings(bench.run, code, (), TURN_ENDS, range(1))]
        assert not found, found
        due, turns = _asked(bench), turns_by_place(bench.run, scenario.racers)
        assert scenario.racers or len(turns) == bench.run.record()["totals"]["turns"]
        assert set(turns.values()) == {Turn(ask.role, ask.visit, ask.repair) for ask in due}
        assert turns.keys() <= recorded_steps(bench.run.journal_path).keys()
        return Undisturbed(bench.passed(), bench.evidence(code), due, turns, seconds)


@dataclass
class Trial:
    """What striking at ``points`` did. ``places``: where the fault struck; fewer if a process ended before its point.

    ``stops``: why a process stopped short, and ``ended_by`` what the first one reports of deadlines that passed.
    ``leaving``: seconds that the killed run's processes took to leave. ``restarts``: the run had no ``run.json`` yet.
    ``struck_resumes``: of the ``resumes``, those that may not be in ``run.json``. ``free``: how often a turn in flight
    may be paid for again, by its place in the journal; ``twice``: how many were.
    """

    fault: Fault
    scenario: Scenario
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


def attempt(
    fault: Fault, scenario: Scenario, points: Points, folder: Path, expected: Undisturbed, at_once: bool = False
) -> Trial:
    """Strike a run, and what resumes it, at ``points``, resume it to its end, and find what is wrong with what it left.

    ``at_once``: resume while processes of a killed run may still be leaving.
    """
    trial, began = Trial(fault, scenario, points, folder), time.monotonic()
    with workbench(fault, scenario, folder, points[0]) as bench:
        try:
            code = _carry_out(trial, bench, at_once)
            trial.wrong += expected.evidence.differences(bench.evidence(code), but=fault.not_compared)
            trial.wrong += disordered(bench.run) if scenario.concurrency == 1 else []
            _count_what_was_paid(trial, bench, expected)
        except (OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    trial.seconds = time.monotonic() - began
    return trial


def _carry_out(trial: Trial, bench: Workbench, at_once: bool) -> int:
    """Run, struck at the points; what is resumed undisturbed must end. Returns the last exit code."""
    for point in (*trial.points, None):
        code = _start_or_resume(trial, bench, point)
        _look(trial, bench, point, code, at_once)
        if bench.disk:
            bench.disk.free()
        if bench.has_ended() and code != bench.fault.exit_code:  # killed after the end, it may lack its page
            break
    return code


def _start_or_resume(trial: Trial, bench: Workbench, point: Point | None) -> int:
    """A run without ``run.json`` is started again under another name."""
    if bench.run.record_path.exists():
        trial.resumes += not bench.has_ended() or bool(read_owner(bench.run))  # killed as it wrote its end
        code = bench.resume(point)
        trial.struck_resumes += bool(bench.struck)
        return code
    if bench.processes:
        trial.restarts += 1
        trial.wrong += [f"paid for before there was a run.json: {ask}" for ask in bench.server.requests]
        bench.run_id = f"{bench.run_id}-again"
    return bench.start(point)


def _look(trial: Trial, bench: Workbench, point: Point | None, code: int, at_once: bool) -> None:
    """Judge what a process left that has ended, or was killed."""
    place = bench.struck
    is_killed = bool(place) and code == bench.fault.exit_code
    trial.places += [place] if place else []
    if not (is_killed and at_once):
        _wait_for_leaving(trial, LEAVING_SECONDS if is_killed else 0.0)
    if not is_killed:
        trial.wrong += _found(trial, bench, point, code)
    if bench.processes == 1 and bench.run.events_path.exists():
        trial.ended_by = list(_deadlines(bench.run))
    unfinished = in_flight(bench.run)
    trial.free |= unfinished
    if len(unfinished) > trial.scenario.concurrency:
        trial.wrong.append(f"{len(unfinished)} turns were in flight at once")


def _wait_for_leaving(trial: Trial, seconds: float) -> None:
    began = time.monotonic()
    left = wait_until_gone(trial.folder, seconds)
    trial.leaving = max(trial.leaving, time.monotonic() - began if seconds else 0.0)
    trial.wrong += [f"after {seconds:g} s still there: {name}" for name in end(left)]


def _found(trial: Trial, bench: Workbench, point: Point | None, code: int) -> Iterator[str]:
    """What is wrong with a process that ended by itself."""
    yield from wrong_output(bench.output, code)
    fault, is_struck, has_ended = bench.fault, bool(bench.struck), bench.has_ended()
    is_stale = is_struck and fault.loses_writes and not has_ended
    record = bench.run.record() if bench.run.record_path.exists() else {}
    if not record or (is_stale and record["status"] == RunStatus.RUNNING):
        trial.stops.append("before it could write why")
        if code != ExitCode.FAILED:
            yield f"exit code {code}, and run.json does not tell of the end"
        return
    honest = fault.honest_outcomes if is_struck and point and not fault.must_succeed(point) else ()
    turn_ends = {*fault.turn_ends, *((None, "running") if is_stale else ())}
    resumes = range(trial.resumes - trial.struck_resumes, trial.resumes + 1)
    yield from findings(bench.run, code, honest, turn_ends, resumes)
    if not has_ended:
        trial.stops.append(f"{record['outcome']}: {record['reason']}")


def _count_what_was_paid(trial: Trial, bench: Workbench, expected: Undisturbed) -> None:
    """Hold what the model was asked against what an undisturbed run asks."""
    if bench.fault.is_paid_once:
        racers = trial.scenario.racers
        free = {place: times for place, times in trial.free.items() if not racers or place in expected.turns}
        account = audit(expected.due, _asked(bench), expected.turns, free)
        trial.wrong += account.wrong
        trial.twice = account.twice
        asked = Counter(ask.role for ask in bench.server.requests.elements() if ask.role in racers)
        trial.wrong += [f"{role} was asked {times} times" for role, times in asked.items() if times > bench.processes]


def _asked(bench: Workbench) -> Counter[AnswerKey]:
    """The requests for all roles but the racers."""
    requests = bench.server.requests
    return Counter({ask: times for ask, times in requests.items() if ask.role not in bench.scenario.racers})


def _deadlines(run: RunFolder) -> Iterator[str]:
    """What the run's events and checks say of deadlines that passed."""
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
        if reason := result.get("reason"):
            yield f"check: {reason}"
