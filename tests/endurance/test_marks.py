"""Every mark fits the package as it is, and a week has each fault."""

from __future__ import annotations

import pytest

from tests.endurance import marks
from tests.endurance.faults import FAULTS
from tests.endurance.marks import MARKS
from tests.everything import WEEKLY_POINTS


def test_every_mark_finds_what_it_surrounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from codex_multi_role.extensions.machines.workers import queued_runs
    from codex_multi_role.extensions.machines.workers.database import Database

    monkeypatch.setattr(Database, "transaction", Database.transaction)  # restored in the end
    monkeypatch.setattr(queued_runs, "ROWS_AT_ONCE", queued_runs.ROWS_AT_ONCE)
    found: list[object] = []
    monkeypatch.setattr(marks, "surround", lambda owner, name, *_, **__: found.append(getattr(owner, name)))
    for mark in MARKS.values():
        mark(lambda *_: False)
    assert len(found) == 11


def test_week_strikes_with_each_fault() -> None:
    assert [*WEEKLY_POINTS] == [*FAULTS]
