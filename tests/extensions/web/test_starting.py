"""Processes that are started for runs: what they say is kept or told, and nobody waits for them too long."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from codex_multi_role.extensions.web.starting import NewRun, RunNotStarted, RunStarter
from tests.support.recorded_runs import make_run
from tests.support.serving import PLAYBOOK, project

pytestmark = pytest.mark.real

DEADLINE_SECONDS = 60


def test_failed_resume_keeps_output_of_earlier_process(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "output.log").write_text("of an earlier one")
    with pytest.raises(RunNotStarted, match="Invalid value for '--cycles'"):
        RunStarter(tmp_path / "runs", None, lambda: False).resume(folder, {"cycles": "many"})
    assert (folder.path / "output.log").read_text() == "of an earlier one"
    assert list((tmp_path / "runs/.starting").iterdir()) == []


def test_server_that_ends_waits_for_no_beginning(tmp_path: Path) -> None:
    starter, before = RunStarter(tmp_path / "runs", None, lambda: True), psutil.Process().children()
    with pytest.raises(RunNotStarted, match="has not started yet") as told:
        starter.start(NewRun("cycles"))
    (child,) = set(psutil.Process().children()) - set(before)
    assert f"Process {child.pid} is still running" in told.value.hint
    psutil.wait_procs([child], DEADLINE_SECONDS)
    (said,) = (tmp_path / "runs/.starting").iterdir()
    assert str(said) in told.value.hint
    assert "missing goal" in said.read_text()
    assert starter.reap() == 0


def test_long_goal_is_not_passed_as_process_argument(tmp_path: Path) -> None:
    """A goal may be longer than an argument and does not appear in the list of processes."""
    team = project(tmp_path)
    (tmp_path / "roles/flows/short.yaml").write_text("goal: {max_length: 9}\nsteps: [{ask: maker}]\n")
    starter = RunStarter(team.runs, tmp_path / "roles", lambda: False)
    with pytest.raises(RunNotStarted, match="the goal has 200000 characters, but 1 to 9 are required"):
        starter.start(NewRun("short", "long" * 50_000, playbook=PLAYBOOK))
    assert "long" not in " ".join(NewRun("short", "long").arguments())
