"""Processes that are started for runs: what they say is kept or told, and nobody waits for them too long."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from codex_multi_role.extensions.pages.serve.starting import NewRun, RunNotStarted, RunStarter
from tests.support.serving import PLAYBOOK, project

pytestmark = pytest.mark.real

DEADLINE_SECONDS = 60


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
