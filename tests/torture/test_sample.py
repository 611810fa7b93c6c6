"""A few of the trials of ``python -m tests.torture``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.disks import small_disk
from tests.torture.__main__ import torture
from tests.torture.full_disk import attempt_on_full_disk
from tests.torture.ground import Undisturbed, undisturbed
from tests.torture.points import KINDS, choose, choose_pairs
from tests.torture.scenarios import SCENARIOS

SINGLE = {"cycles": 0, "fan-out": 1, "plan-solve": 1}
DOUBLE = {"cycles": 1, "fan-out": 0, "plan-solve": 0}
FULL = {"cycles": 1, "fan-out": 1}
SEED = 21


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Undisturbed]:
    """What a scenario is when it is left alone, by its name; found out once."""
    return cache(lambda name: undisturbed(SCENARIOS[name], tmp_path_factory.mktemp(name) / "undisturbed"))


def sure_to_come(expected: Undisturbed) -> dict[str, int]:
    """How many points of each kind every run has: the journal is written a few times more or less."""
    return {kind: count * 3 // 4 for kind, count in expected.counts.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_run_killed_anywhere_resumes_like_undisturbed_run(
    tmp_path: Path, name: str, left_alone: Callable[[str], Undisturbed]
) -> None:
    scenario, expected = SCENARIOS[name], left_alone(name)
    counts = sure_to_come(expected)
    singles = choose(counts, KINDS, SINGLE[name], SEED)
    pairs = choose_pairs(counts, KINDS, DOUBLE[name], SEED)
    trials = list(torture(scenario, [*singles, *pairs], tmp_path, expected))
    assert [(str(trial.kills), trial.places, trial.wrong) for trial in trials if trial.wrong] == []
    assert sum(trial.resumes + trial.anew for trial in trials) >= SINGLE[name]


@pytest.mark.parametrize("name", FULL)
def test_full_disk_is_reported_and_run_resumes_with_space(
    tmp_path: Path, name: str, left_alone: Callable[[str], Undisturbed]
) -> None:
    try:
        with small_disk(tmp_path, 1):
            pass
    except OSError as error:
        pytest.skip(f"this system gives no disk of one's own: {error}")
    expected = left_alone(name)
    points = choose(sure_to_come(expected), KINDS, FULL[name], SEED)
    trials = list(torture(SCENARIOS[name], points, tmp_path, expected, attempt_on_full_disk))
    assert [(str(trial.kills), trial.places, trial.wrong) for trial in trials if trial.wrong] == []
    assert sum(len(trial.places) for trial in trials) == FULL[name]
