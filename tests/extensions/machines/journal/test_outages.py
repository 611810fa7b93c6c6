"""A database that is away in the middle of a run: the run waits for it, and no recorded turn is repeated."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.extensions.machines.journal import outages
from tests.support.databases import PASSWORD, DatabaseServer, execute, running_server
from tests.support.networks import network
from tests.support.teams import Record, TeamFolder, say, warnings

CYCLES = 3
RECORDED = "SELECT function_id FROM dbos.operation_outputs WHERE function_name = 'one turn'"
END_SECONDS = 60


@pytest.fixture
def server() -> Iterator[DatabaseServer]:
    with running_server() as server:
        yield server


def team_of(folder: Path) -> TeamFolder:
    return TeamFolder(folder, {"one": {}}, {"one": [say(str(cycle)) for cycle in range(1, CYCLES + 1)]})


def run_with(team: TeamFolder, server: DatabaseServer, disturb: Callable[[], None]) -> RunReport:
    """A run of `CYCLES` turns that is disturbed when the second one starts."""

    def on_event(event: Record) -> None:
        team.events.append(event)
        if event["type"] == "turn_started" and event["turn"] == 2:
            disturb()

    return run(team.options(cycles=CYCLES, database_url=server.url), on_event)


@pytest.mark.long
def test_restart_of_the_server_repeats_no_turn(tmp_path: Path, server: DatabaseServer) -> None:
    team = team_of(tmp_path)
    report = run_with(team, server, server.restart)
    assert report.outcome == "cycles_used_up"
    assert team.turns() == [("one", number, "completed") for number in range(1, CYCLES + 1)]
    assert len(execute(server.url, RECORDED)) == CYCLES


@pytest.mark.long
def test_server_that_stays_away_ends_the_run(
    tmp_path: Path, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn that could not be recorded is in the run's folder, and is not repeated when the server is back."""
    monkeypatch.setattr(outages, "OUTAGE_SECONDS", 2.0)
    team = team_of(tmp_path)
    report = run_with(team, server, server.stop)
    assert (report.outcome, report.exit_code) == ("storage_failed", 3)
    assert "has not answered" in report.reason
    assert "that the server runs" in report.hint
    (warning,) = warnings(team.events)
    assert "does not answer; the run waits" in warning
    server.start()
    assert team.resume().outcome == "cycles_used_up"
    assert team.turns() == [("one", 3, "completed")]
    assert len(execute(server.url, RECORDED)) == CYCLES


@pytest.mark.long
def test_run_is_interrupted_while_it_waits_for_the_server(tmp_path: Path, server: DatabaseServer) -> None:
    team = team_of(tmp_path)
    with team.start("--json", "--cycles", str(CYCLES), "--database-url", server.url) as process:
        for event in events_of(process):
            if event["type"] == "turn_started" and event["turn"] == 2:
                server.stop()
            if event["type"] == "warning":
                process.send_signal(signal.SIGINT)
        assert process.wait(END_SECONDS) == 130


@pytest.mark.long
def test_cut_network_repeats_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    team = team_of(tmp_path)
    with network() as own, running_server(own.address) as server, own.machine(server.port) as machine:
        url = f"postgresql://tester@{machine.host}:{machine.port}/postgres"
        command = team.command("--json", "--cycles", str(CYCLES), "--database-url", url)
        told = []
        with machine.start(command, cwd=team.folder, stdout=subprocess.PIPE) as process:
            for event in events_of(process):
                told.append((event["type"], event.get("turn")))
                if told[-1] == ("turn_started", 2):
                    machine.cut()
                if event["type"] == "warning" and "does not answer" in event["message"]:
                    machine.reconnect()
            assert process.wait(END_SECONDS) == 1
        assert [turn for kind, turn in told if kind == "turn_ended"] == [1, 2, 3]
        assert len(execute(server.url, RECORDED)) == CYCLES


def events_of(process: subprocess.Popen[str]) -> Iterator[Record]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)
