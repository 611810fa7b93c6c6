"""A sample of the kills of `worker_kills`; all of them take minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance.kill_command import failures, try_places
from tests.endurance.worker_kills import Trials
from tests.support.databases import DatabaseServer


@pytest.mark.long(
    "extensions/machines/workers/test_membership.py::test_runs_of_a_dead_worker_are_taken_over",
    "extensions/machines/workers/test_queued_runs.py::test_late_process_writes_nothing",
    "extensions/machines/store/test_continuing.py::test_run_continues_in_other_folders_at_other_paths",
)
def test_killed_at_some_writes_and_continued(tmp_path: Path, database_server: DatabaseServer) -> None:
    trials = Trials(database_server.url, tmp_path)
    expected, count = trials.undisturbed()
    assert (expected.exit_code, list(expected.files)) == (1, ["1.txt", "2.txt", "kept.txt"])
    assert len(expected.turns) == 2
    places = (count // 4, count // 2)
    assert failures([*try_places(trials, places, expected, 2)]) == []
