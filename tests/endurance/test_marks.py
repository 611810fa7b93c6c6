"""Every mark fits the package as it is: a run with all of them passes them, and ends as without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance import marks
from tests.endurance.faults import FAULTS
from tests.endurance.marks import MARKS
from tests.endurance.scenarios import FAN_OUT
from tests.endurance.trial import undisturbed


@pytest.mark.long("endurance/test_marks.py::test_every_mark_finds_what_it_surrounds")
def test_marked_run_passes_places_of_every_kind(tmp_path: Path) -> None:
    passed = undisturbed(FAULTS["kill"], FAN_OUT, tmp_path / "undisturbed").passed
    assert set(FAULTS["kill"].counts(passed)) == set(MARKS)
    assert all(FAULTS["kill"].counts(passed).values())


def test_every_mark_finds_what_it_surrounds(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []
    monkeypatch.setattr(marks, "surround", lambda owner, name, *_, **__: found.append(getattr(owner, name)))
    for mark in MARKS.values():
        mark(lambda *_: False)
    assert len(found) == 8
