"""A few of the trials of ``python -m tests.frozen``."""

from __future__ import annotations

from pathlib import Path

from tests.frozen.__main__ import freeze
from tests.frozen.trial import undisturbed
from tests.torture.points import Point

PROGRAMS = {
    "starts": "codex sandbox",  # with the tests in it
    "wire": "codex app-server after turn/started from it",
}
"""By kind, what is frozen the first time that it comes."""


def test_run_ends_and_resumes_whichever_child_is_frozen(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path / "undisturbed")
    points = [Point(kind, expected.passed[kind].index(what) + 1) for kind, what in PROGRAMS.items()]
    trials = list(freeze(points, tmp_path, expected))
    assert [(str(trial.point), trial.what, trial.wrong) for trial in trials if trial.wrong] == []
    # Processes start side by side: in a trial another one may come at that number, and may hold up nothing.
    meant = [trial for trial in trials if trial.what in PROGRAMS.values()]
    assert meant
    assert all(trial.ended_by for trial in meant)
