"""A sample of the kills of `worker_kills`; all of them take minutes."""

from __future__ import annotations

from pathlib import Path

from tests.endurance.kill_command import failures, try_places
from tests.endurance.worker_kills import Trials
from tests.support.databases import DatabaseServer


def test_killed_at_some_writes_and_continued(tmp_path: Path, database_server: DatabaseServer) -> None:
    trials = Trials(database_server.url, tmp_path)
    expected, count = trials.undisturbed()
    assert (expected.exit_code, list(expected.files)) == (1, ["1.txt", "2.txt", "kept.txt"])
    assert len(expected.turns) == 2
    places = (count // 4, count // 2)
    assert failures([*try_places(trials, places, expected, 2)]) == []
