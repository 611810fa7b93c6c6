"""A few of the cases of ``python -m tests.chaos``."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.__main__ import chaos
from tests.chaos.profiles import Case
from tests.chaos.trial import undisturbed

CASES = [Case("gentle", 1), Case("cruel", 2)]


def test_whatever_happens_on_the_wire_a_run_is_right_or_stops_honestly(tmp_path: Path) -> None:
    trials = list(chaos(CASES, tmp_path, undisturbed(tmp_path / "undisturbed")))
    assert [(f"python -m tests.chaos --only {trial.case}", trial.wrong) for trial in trials if trial.wrong] == []
    assert any(trial.stop for trial in trials)
    assert any(not trial.stop for trial in trials)
