"""Flows of chance, killed at each of their steps and resumed: the same end, nothing paid twice, nothing left behind.

`attempt` holds against an undisturbed run: the end, the workspace, its worktrees, the journal and all states; what the
model was asked; and that no process is left.

Costs: each flow is killed and resumed at each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.endurance.__main__ import endure
from tests.endurance.bench import Trial, Undisturbed
from tests.endurance.faults import FAULTS
from tests.endurance.points import Point, Points
from tests.endurance.random_flows import random_flow
from tests.endurance.trial import undisturbed

pytestmark = pytest.mark.real
KILL = FAULTS["kill"]
SHORT = 7
"""A flow with a race, an ``until`` that is met in order, and a flow that it calls."""


MOST_POINTS = 40


def every_step(expected: Undisturbed) -> list[Points]:
    """Just before and just after the journal is opened, and each step is recorded; of many, evenly spread ones."""
    every = [Points([Point("journal", number)]) for number in range(1, len(expected.passed["journal"]) + 1)]
    return every[:: 1 + len(every) // MOST_POINTS]


def wrong(trials: Iterable[Trial]) -> list[object]:
    return [(str(trial.points), trial.places, trial.wrong) for trial in trials if trial.wrong]


def test_flow_killed_at_a_step_resumes_like_an_undisturbed_one(tmp_path: Path) -> None:
    """In its middle, and before its end is recorded."""
    scenario = random_flow(SHORT)
    expected = undisturbed(KILL, scenario, tmp_path / "undisturbed")
    points = every_step(expected)
    trials = list(endure(KILL, scenario, [points[len(points) // 2], points[-2]], tmp_path, expected))
    assert wrong(trials) == []
    assert [trial.resumes for trial in trials] == [1, 1]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
def test_ten_flows_killed_at_every_step_resume_like_undisturbed_ones(tmp_path: Path, seed: int) -> None:
    scenario = random_flow(seed)
    expected = undisturbed(KILL, scenario, tmp_path / "undisturbed")
    assert wrong(endure(KILL, scenario, every_step(expected), tmp_path, expected)) == []
