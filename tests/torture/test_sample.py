"""A few of the points of ``python -m tests.torture``."""

from __future__ import annotations

from pathlib import Path

from tests.torture.__main__ import torture
from tests.torture.points import KINDS, choose
from tests.torture.trial import undisturbed

POINTS = 8
SEED = 20


def test_a_run_killed_anywhere_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    counts = {kind: len(places) for kind, places in expected.passed.items()}
    trials = list(torture(choose(counts, KINDS, POINTS, SEED), tmp_path, expected))
    assert [(str(trial.point), trial.place, trial.wrong) for trial in trials if trial.wrong] == []
    assert sum(trial.resumes + trial.anew for trial in trials) >= POINTS // 2
