"""A database that is away in the middle of a run: the run waits for it, and no recorded turn is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from codex_multi_role import run
from codex_multi_role.errors import RunInterrupted
from codex_multi_role.extensions.machines.journal import outages
from tests.support.databases import DatabaseServer, execute, running_server
from tests.support.teams import Record, TeamFolder, say, warnings

CYCLES = 3
RECORDED = "SELECT function_id FROM dbos.operation_outputs WHERE function_name = 'one turn'"


@pytest.fixture
def server() -> Iterator[DatabaseServer]:
    with running_server() as server:
        yield server


class Refused(Exception):
    """The driver's error."""


def test_wait_for_a_server_is_told_and_may_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "PAUSE_SECONDS", 0.0)
    told, connection = list[str](), Mock()
    dialect = Mock(driver="psycopg", loaded_dbapi=Mock(Error=Refused))
    dialect.connect.side_effect = [Refused("starting up"), Refused("starting up"), connection, Refused("cut")]
    waits = outages.Outages("the database", told.append, lambda: len(told) > 1)
    waits.patient = True
    assert waits._connect(dialect, None, [], {}) is connection
    assert [line.partition(",")[0].partition(";")[0] for line in told] == [
        "the database does not answer",
        "the database answers again",
    ]
    with pytest.raises(RunInterrupted):
        waits._connect(dialect, None, [], {})


@pytest.mark.long
def test_server_that_stays_away_ends_the_run(
    tmp_path: Path, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only here a run loses its server: the turn that was not recorded is in the run's folder, and is not repeated."""
    monkeypatch.setattr(outages, "OUTAGE_SECONDS", 2.0)
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say(str(cycle)) for cycle in range(1, CYCLES + 1)]})

    def on_event(event: Record) -> None:
        team.events.append(event)
        if event["type"] == "turn_started" and event["turn"] == 2:
            server.stop()

    report = run(team.options(cycles=CYCLES, database_url=server.url), on_event)
    assert (report.outcome, report.exit_code) == ("storage_failed", 3)
    assert "has not answered" in report.reason
    assert "that the server runs" in report.hint
    (warning,) = warnings(team.events)
    assert "does not answer; the run waits" in warning
    server.start()
    assert team.resume().outcome == "cycles_used_up"
    assert team.turns() == [("one", 3, "completed")]
    assert len(execute(server.url, RECORDED)) == CYCLES
