"""The journal in a real PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_multi_role import fork
from codex_multi_role.errors import UsageError
from codex_multi_role.option_keywords import ForkKeywords
from tests.support.processes import watched
from tests.support.teams import Record, TeamFolder, say

pytestmark = pytest.mark.real


@pytest.mark.usefixtures("scripted_codex")
def test_run_and_its_resumption(tmp_path: Path, database_url: str) -> None:
    roles: dict[str, Record] = {"one": {}, "two": {}}
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in roles}
    team = TeamFolder(tmp_path, roles, plays)
    report = team.run(database_url=database_url)
    assert report.outcome == "cycles_used_up"
    assert not (report.folder / "journal.sqlite").exists()
    assert team.resume(cycles=2).outcome == "cycles_used_up"
    assert [turn[:2] for turn in team.turns()] == [("one", 2), ("two", 2)]


@pytest.mark.long
def test_no_process_takes_up_the_run_of_another(tmp_path: Path, database_url: str) -> None:
    """Only here two processes share the engine's tables: each resumption is a chance for the other one."""
    waits = {"json": {"summary": "late"}, "delay_seconds": 120}
    other = TeamFolder(tmp_path / "other", {"one": {}}, {"one": [waits]})
    team = TeamFolder(tmp_path / "own", {"one": {}}, {"one": [say(str(cycle)) for cycle in range(1, 5)]})
    team.run(database_url=database_url)
    with watched(other.start("--json", "--database-url", database_url), ("turn_started", "one")) as process:
        for cycles in range(2, 5):
            resumed = team.resume(cycles=cycles)
            assert resumed.outcome == "cycles_used_up", resumed.reason
            assert team.turns() == [("one", cycles, "completed")]
        assert process.poll() is None


def test_unreachable_postgres_server_is_reported(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    report = team.run(database_url="postgresql://tester@127.0.0.1:1/postgres")
    assert (report.outcome, report.exit_code) == ("storage_failed", 3)
    assert "127.0.0.1:1" in report.reason
    assert "Check that the server runs" in report.hint


@pytest.mark.long
def test_fork_beside_its_run(tmp_path: Path, database_url: str) -> None:
    """Only here the steps of a fork are copied within a database."""
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two")}
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, plays)
    parent = team.run(database_url=database_url, cycles=2)
    with pytest.raises(UsageError, match="the flow would end earlier"):
        fork(parent.run_id, runs_dir=team.runs, start="team:2", changes={"cycles": 1, "run_id": "second"})
    team.events.clear()
    changes: ForkKeywords = {"goal": "another", "run_id": "second"}
    report = fork(parent.run_id, runs_dir=team.runs, start="team:2", changes=changes, on_event=team.events.append)
    assert report.outcome == "cycles_used_up"
    assert [turn[:2] for turn in team.turns()] == [("one", 2), ("two", 2)]
    assert team.resume().outcome == "cycles_used_up"
    assert team.turns() == []
