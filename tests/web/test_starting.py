"""Processes that are started for runs: what they say is kept or told, and nobody waits for them too long."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from codex_multi_role.web.starting import NewRun, NotBegun, Starter
from tests.cli.run_folders import make_run

DEADLINE_SECONDS = 60


def test_a_resume_that_does_not_begin_leaves_alone_what_an_earlier_process_says(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    (folder.path / "output.log").write_text("of an earlier one")
    with pytest.raises(NotBegun, match="Invalid value for '--cycles'"):
        Starter(tmp_path / "runs", None, lambda: False).resume(folder, "many")
    assert (folder.path / "output.log").read_text() == "of an earlier one"
    assert list((tmp_path / "runs/.starting").iterdir()) == []


def test_a_server_that_ends_waits_for_no_beginning(tmp_path: Path) -> None:
    starter = Starter(tmp_path / "runs", None, lambda: True)
    with pytest.raises(NotBegun, match="has not begun yet") as told:
        starter.start(NewRun("cycles"))
    (child,) = psutil.Process().children()
    assert f"Process {child.pid} goes on" in told.value.hint
    psutil.wait_procs([child], DEADLINE_SECONDS)
    (said,) = (tmp_path / "runs/.starting").iterdir()
    assert str(said) in told.value.hint
    assert "there is no goal" in said.read_text()
    assert starter.reap() == 0
