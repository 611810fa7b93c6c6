"""One trial: work that a fault strikes, continued until it has ended, and held against work that was left alone."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

from tests.endurance.bench import Bench, Trial, Undisturbed
from tests.endurance.evidence import differences
from tests.endurance.faults import Fault
from tests.endurance.points import Point, Points
from tests.endurance.scenarios import Scenario, Struck
from tests.endurance.workbench import workbench
from tests.support.leftovers import end, wait_until_gone

LEAVING_SECONDS = 10.0
"""For the processes of a run that was killed: nothing of it is left that could end them."""


def undisturbed(fault: Fault, scenario: Struck, folder: Path) -> Undisturbed:
    """Do the work as ``fault`` has it done, but let nothing strike. Raises AssertionError if it cannot be a measure."""
    trial = Trial(fault, scenario, Points(), folder)
    with _bench(fault, scenario, folder) as bench:
        began = time.monotonic()
        code = bench.go_on(trial, None)
        seconds = time.monotonic() - began
        assert code == 0, bench.output.read_text()
        bench.look(trial, None, code)
        assert not trial.wrong, trial.wrong
        assert bench.has_ended()
        return Undisturbed(bench.passed(), bench.evidence(code), *bench.bill(), seconds)


def attempt(
    fault: Fault,
    scenario: Struck,
    points: Points,
    folder: Path,
    expected: Undisturbed,
    at_once: bool = False,
) -> Trial:
    """Strike work, and what continues it, at ``points``, let it end, and find what is wrong with what it left.

    ``at_once``: continue while processes of killed work may still be leaving.
    """
    trial, began = Trial(fault, scenario, points, folder), time.monotonic()
    with _bench(fault, scenario, folder, points[0]) as bench:
        try:
            code = _carry_out(trial, bench, at_once)
            trial.wrong += differences(expected.evidence, bench.evidence(code), but=fault.not_compared)
            trial.wrong += bench.account(trial, expected)
        except (OSError, ValueError, LookupError, AssertionError) as error:
            trial.wrong.append(f"{type(error).__name__}: {error}")
    trial.seconds = time.monotonic() - began
    return trial


def _bench(fault: Fault, scenario: Struck, folder: Path, point: Point | None = None) -> AbstractContextManager[Bench]:
    if isinstance(scenario, Scenario):
        return workbench(fault, scenario, folder, point)
    from tests.endurance.machines import machine_bench  # imports what no run needs

    return machine_bench(fault, scenario, folder)


def _carry_out(trial: Trial, bench: Bench, at_once: bool) -> int:
    """Do the work, struck at the points; what continues undisturbed must end. Returns the last exit code."""
    for point in (*trial.points, None):
        code = bench.go_on(trial, point)
        _look(trial, bench, point, code, at_once)
        if bench.disk:
            bench.disk.free()
        if bench.has_ended() and code != bench.fault.exit_code:  # killed after the end, it may lack its page
            break
    return code


def _look(trial: Trial, bench: Bench, point: Point | None, code: int, at_once: bool) -> None:
    """Judge what a process left that has ended, or was killed."""
    place = bench.struck
    is_killed = bool(place) and code == bench.fault.exit_code
    trial.places += [place] if place else []
    if not (is_killed and at_once):
        _wait_for_leaving(trial, LEAVING_SECONDS if is_killed else 0.0)
    bench.look(trial, point, code)


def _wait_for_leaving(trial: Trial, seconds: float) -> None:
    began = time.monotonic()
    left = wait_until_gone(trial.folder, seconds)
    trial.leaving = max(trial.leaving, time.monotonic() - began if seconds else 0.0)
    trial.wrong += [f"after {seconds:g} s still there: {name}" for name in end(left)]
