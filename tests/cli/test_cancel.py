"""``cancel`` tells the truth about a run's process, also where a part of the run cannot be interrupted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from codex_multi_role.cli.main import group
from codex_multi_role.errors import RunBusy
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.console import console
from tests.support.processes import wait_for
from tests.support.teams import NEVER, TeamFolder, read, say

WAIT_SECONDS = 60.0
STUCK = """
import sys
from pathlib import Path
import codex_multi_role.lifecycle.session
import codex_multi_role.cli.main as main
import codex_multi_role.steps.turn as turn

def never(*_):
    Path("stuck").touch()
    while True:
        pass

turn.read_reply = never
codex_multi_role.lifecycle.session.STOP_SECONDS = 0.5
{more}
sys.exit(main.main())
"""


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})


def stuck(team: TeamFolder, more: str = "") -> subprocess.Popen[bytes]:
    """A run whose work no signal can interrupt."""
    command = [sys.executable, "-c", STUCK.format(more=more), *team.command("--quiet")[3:]]
    process = subprocess.Popen(command, cwd=team.folder)
    wait_for(team.folder / "stuck")
    return process


@pytest.fixture
def ended() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are gone after the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for each in processes:
        each.kill()
        each.wait()


def test_cancelled_run_process_ends_despite_stuck_work(team: TeamFolder, ended: list[subprocess.Popen[bytes]]) -> None:
    """The work of the run cannot be interrupted by any signal."""
    ended.append(stuck(team))
    cancelled = console("cancel", "latest", folder=team.folder)
    assert (cancelled.returncode, cancelled.stdout) == (0, "")
    assert ended[0].poll() == 130
    assert read(team.runs / "latest/run.json")["status"] == "interrupted"


def test_run_still_working_is_not_reported_as_cancelled(
    team: TeamFolder, ended: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process outlives its session, as when it is part of another program, and its work continues."""
    ended.append(stuck(team, "main._exit_if_blocked = lambda code: __import__('time').sleep(600)"))
    monkeypatch.setattr("codex_multi_role.lifecycle.stopping.SIGNALS", ((2, 8.0),))
    with pytest.raises(RunBusy, match="still works on the run") as refused:
        stop_run(RunFolder.find(team.runs, "latest"))
    assert refused.value.hint.startswith(f"`kill -9 {ended[0].pid}`")
    assert is_alive(RunFolder.find(team.runs, "latest"))
    assert console("resume", "latest", folder=team.folder).returncode == 2


def test_process_that_outlives_its_run_is_named(
    team: TeamFolder, ended: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as another program that ran it as a library."""
    code = (
        "import subprocess, sys, time; from codex_multi_role.cli.main import group, run_guarded; "
        "run_guarded(group, sys.argv[1:]); time.sleep(600)"
    )
    team.plays["one"] = [NEVER]
    team.write_plays()
    ended.append(subprocess.Popen([sys.executable, "-c", code, *team.command("--quiet")[3:]], cwd=team.folder))
    wait_for(team.runs / "latest/one/turn_001/turn.json")
    monkeypatch.setattr("codex_multi_role.lifecycle.stopping.LEAVING_SECONDS", 0.2)
    told = CliRunner().invoke(group, ["cancel", "latest", "--runs-dir", str(team.runs)])
    assert told.exit_code == 0
    assert f"process {ended[0].pid}, which worked on it, is still running" in told.stderr
    assert "Cancelled" in told.stderr
