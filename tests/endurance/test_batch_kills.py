"""A sample of the kills of `batch_kills`; all of them take minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.batch_kills import GOALS, Trials
from tests.endurance.kill_command import failures, try_places
from tests.support.databases import DatabaseServer


@pytest.mark.long(
    "extensions/machines/workers/test_membership.py::test_enqueuing_cut_short_by_a_kill_is_completed",
    "extensions/machines/workers/test_queued_runs.py::test_run_submitted_twice_stays_as_it_is",
    "extensions/machines/batches/test_submitted_runs.py::test_results_come_from_the_database",
)
def test_batch_killed_at_some_places_is_resumed(tmp_path: Path, database_server: DatabaseServer) -> None:
    trials = Trials(database_server.url, tmp_path)
    expected, count = trials.undisturbed()
    assert len(expected.results) == expected.workflows == GOALS
    places = (count // 4, count // 2)
    assert failures([*try_places(trials, places, expected, 2)]) == []
