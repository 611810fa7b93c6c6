"""A few of the trials of ``python -m tests.torture``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.__main__ import torture
from tests.torture.ground import undisturbed
from tests.torture.points import KINDS, choose, choose_pairs
from tests.torture.scenarios import SCENARIOS

SINGLE = {"cycles": 2, "fan-out": 3}
DOUBLE = {"cycles": 0, "fan-out": 1}
SEED = 20


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_killed_anywhere_goes_on_as_if_nothing_had_been(tmp_path: Path, name: str) -> None:
    scenario = SCENARIOS[name]
    expected = undisturbed(scenario, tmp_path / "undisturbed")
    singles = choose(expected.counts, KINDS, SINGLE[name], SEED)
    pairs = choose_pairs(expected.counts, KINDS, DOUBLE[name], SEED)
    trials = list(torture(scenario, [*singles, *pairs], tmp_path, expected))
    assert [(str(trial.kills), trial.places, trial.wrong) for trial in trials if trial.wrong] == []
    assert sum(trial.resumes + trial.anew for trial in trials) >= SINGLE[name]
