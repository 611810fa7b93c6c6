"""Which turns of an earlier run are taken over: exactly those that show a model nothing new."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest

from tests.support.pure_models import PureModel, play
from tests.support.random_flows import numbered
from tests.support.random_reruns import EDITS, is_exact, projects

pytestmark = pytest.mark.real

EDITS_PER_PROJECT = 10


def check_project(folder: Path, seed: int, edits: int) -> int:
    """Compare reruns of a random project after random edits with full runs; returns how many turns were taken over."""
    chance, model, taken = Random(seed), PureModel(), 0
    project = numbered(projects(), seed)
    first = play(project.write(folder / "first"), model)
    for number in range(edits):
        edit = chance.choice(EDITS)
        edited = deepcopy(project)
        edit.apply(chance, edited)
        where = f"seed {seed}, edit {number}: {edit}"
        full = play(edited.write(folder / f"full{number}"), model)
        again = play(edited.write(folder / f"again{number}"), model, first.run_id)
        required = Counter(full.shown) - Counter(first.shown)
        assert required <= Counter(again.shown) <= Counter(full.shown), where
        assert Counter(again.shown) == required or not is_exact(edited, edit), where
        assert (again.files, again.end) == (full.files, full.end), where
        assert not again.shown or edit.has_effect or not is_exact(edited, edit), where
        taken += len(full.shown) - len(again.shown)
    return taken


SAMPLE = pytest.mark.long


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=SAMPLE) for seed in range(100, 125))])
def test_rerun_asks_what_depends_on_the_edit(seed: int, tmp_path: Path) -> None:
    """Asked is what shows the model something new and nothing else, and the files are those of a full run."""
    check_project(tmp_path, seed, EDITS_PER_PROJECT if seed else 5)
