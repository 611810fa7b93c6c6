"""A few of the trials of ``python -m tests.endurance``.

None runs by default. Tests of a single fault each protect the same: a kill in `tests/engine/test_resume.py`, a full
disk in `tests/test_bad_surroundings.py`, a frozen process in `tests/engine/test_frozen.py` and
`tests/codex/test_client.py`, a disturbed line in `tests/engine/test_disturbed.py` and `tests/codex/test_disturbed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.endurance.__main__ import endure
from tests.endurance.faults import FAULTS
from tests.endurance.points import Point, Points, choose, choose_pairs
from tests.endurance.scenarios import CYCLES, EVERY_CHILD, EVERY_MESSAGE, FAN_OUT, MIXED, PLAN_SOLVE, PLANNED, Scenario
from tests.endurance.trial import Trial, Undisturbed, undisturbed
from tests.support.disks import small_disk

pytestmark = pytest.mark.long
KILL, FULL_DISK, FROZEN, LINE = FAULTS.values()
SEED = 21
LeftAlone = Callable[[Scenario], Undisturbed]


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> LeftAlone:
    """What a run of a scenario passes and leaves if nothing strikes it; found out once."""
    faults = {each.name: fault for fault in (LINE, FROZEN, KILL) for each in fault.scenarios}
    names = {each.name: each for fault in FAULTS.values() for each in fault.scenarios}
    found = cache(lambda name: undisturbed(faults[name], names[name], tmp_path_factory.mktemp(name) / "undisturbed"))
    return lambda scenario: found(scenario.name)


def sure_to_come(expected: Undisturbed) -> dict[str, int]:
    """How many points of each kind every run has: the journal is written a few times more or less."""
    return {kind: count * 3 // 4 for kind, count in KILL.counts(expected.passed).items()}


def wrong(trials: Sequence[Trial]) -> list[object]:
    return [(trial.fault.name, str(trial.points), trial.places, trial.wrong) for trial in trials if trial.wrong]


@pytest.mark.parametrize(
    ("scenario", "pairs"),
    [(CYCLES, 0), (CYCLES, 1), (FAN_OUT, 0), (PLAN_SOLVE, 0), (MIXED, 0), (PLANNED, 0)],
)
def test_run_killed_anywhere_resumes_like_undisturbed_run(
    tmp_path: Path, scenario: Scenario, pairs: int, left_alone: LeftAlone
) -> None:
    expected = left_alone(scenario)
    counts = sure_to_come(expected)
    chosen = choose_pairs(counts, [*counts], pairs, SEED) or choose(counts, counts, 1, SEED)
    trials = list(endure(KILL, scenario, chosen, tmp_path, expected))
    assert wrong(trials) == []
    assert [bool(trial.resumes + trial.restarts) for trial in trials] == [True]


@pytest.mark.parametrize("scenario", [CYCLES, FAN_OUT])
def test_full_disk_is_reported_and_run_resumes_with_space(
    tmp_path: Path, scenario: Scenario, left_alone: LeftAlone
) -> None:
    try:
        with small_disk(tmp_path, 1):
            pass
    except OSError as error:
        pytest.skip(f"this system gives no disk of one's own: {error}")
    expected = left_alone(scenario)
    counts = sure_to_come(expected)
    trials = list(endure(FULL_DISK, scenario, choose(counts, counts, 1, SEED), tmp_path, expected))
    assert wrong(trials) == []
    assert [len(trial.places) for trial in trials] == [1]


PROGRAMS: Mapping[str, str] = {
    "starts": "codex sandbox",  # with the tests in it
    "wire": "at turn/started from",
}
"""By kind, what is frozen the last time that it comes: the sandbox is also tried before the first turn."""


def test_run_ends_and_resumes_whichever_child_is_frozen(tmp_path: Path, left_alone: LeftAlone) -> None:
    expected = left_alone(EVERY_CHILD)
    chosen = [
        Points([Point(kind, max(n for n, place in enumerate(expected.passed[kind], 1) if place.startswith(program)))])
        for kind, program in PROGRAMS.items()
    ]
    trials = list(endure(FROZEN, EVERY_CHILD, chosen, tmp_path, expected))
    assert wrong(trials) == []
    # Processes start side by side: in a trial another one may come at that number, and may hold up nothing.
    meant = [trial for trial in trials if trial.places[0].startswith(PROGRAMS[trial.points[0].kind])]
    assert meant
    assert all(trial.ended_by for trial in meant)


def test_disturbed_run_is_correct_or_stops_with_a_reason(tmp_path: Path, left_alone: LeftAlone) -> None:
    """Whatever happens on the connection, a run ends with the right result or stops and reports truthfully why."""
    chosen = [Points([Point("gentle", 1)]), Points([Point("cruel", 2)])]
    trials = list(endure(LINE, EVERY_MESSAGE, chosen, tmp_path, left_alone(EVERY_MESSAGE)))
    assert wrong(trials) == []
    assert all(trial.places for trial in trials)
    assert any(trial.stops for trial in trials)
    assert any(not trial.stops for trial in trials)
