"""A few of the cases of ``python -m tests.chaos``."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.__main__ import chaos
from tests.chaos.profiles import Case
from tests.chaos.trial import undisturbed

CASES = [Case("gentle", 1), Case("cruel", 2)]


def test_disturbed_run_is_correct_or_stops_with_a_reason(tmp_path: Path) -> None:
    """Whatever happens on the connection, a run ends with the right result or stops and reports truthfully why."""
    trials = list(chaos(CASES, tmp_path, undisturbed(tmp_path / "undisturbed")))
    assert [(f"python -m tests.chaos --only {trial.case}", trial.wrong) for trial in trials if trial.wrong] == []
    assert any(trial.stop for trial in trials)
    assert any(not trial.stop for trial in trials)
