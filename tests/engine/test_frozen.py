"""Processes that freeze themselves, deaf to SIGTERM: the run ends, says why, and leaves none of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.support.leftovers import processes_of
from tests.support.processes import FREE, LOOK_SECONDS, WAIT_SECONDS, wait_for
from tests.support.teams import TeamFolder, read, say

pytestmark = pytest.mark.real

FREEZE = "trap '' TERM; kill -STOP $$"
WRITER = {"prompt_flags": {"allow_write": True}}
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch"


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)


@pytest.mark.parametrize(
    ("role", "command"),
    [
        ({}, FREEZE),
        pytest.param(FREE, FREEZE, marks=pytest.mark.long),
        (FREE, f'setsid -f sh -c "{FREEZE.replace("$", chr(92) + "$")}"'),
    ],
)
def test_tool_command_that_freezes_does_not_outlive_the_run(
    tmp_path: Path, role: dict[str, object], command: str
) -> None:
    call = {"call": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 250}}
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [call, say()]}]})
    assert team.run().outcome == "cycles_used_up"
    assert commands_of(tmp_path) == []


@pytest.mark.long
def test_frozen_git_is_reported_and_run_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git_that_freezes(tmp_path, monkeypatch)
    monkeypatch.setattr("codex_multi_role.workspace.git.GIT_SECONDS", 2.0)
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [{"steps": [{"patch": PATCH}, say()]}] * 2})
    report = team.run()
    assert (report.exit_code, report.outcome) == (3, "storage_failed")
    turn = read(report.folder / "one/turn_001/turn.json")
    assert (turn["status"], turn["reason"]) == ("failed", "storage_failed: git diff-tree took longer than 2 s")
    assert commands_of(tmp_path) == []
    assert team.resume().outcome == "cycles_used_up"
    assert (team.workspace / "new.txt").read_text() == "new\n"


@pytest.mark.long
def test_frozen_git_does_not_outlive_killed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone after the run was resumed."""
    once = git_that_freezes(tmp_path, monkeypatch)
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [{"steps": [{"patch": PATCH}, say()]}] * 2})
    with team.start() as process:
        wait_for(once)
        process.kill()
    assert team.resume().outcome == "cycles_used_up"
    assert commands_of(tmp_path) == []


@pytest.mark.long
def test_ctrl_c_twice_ends_a_run_whose_git_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, the run would wait for it until STOP_SECONDS are over."""
    once = git_that_freezes(tmp_path, monkeypatch)
    team = TeamFolder(tmp_path, {"one": WRITER}, {"one": [{"steps": [{"patch": PATCH}, say()]}] * 2})
    with team.start() as process:
        wait_for(once)
        process.send_signal(signal.SIGINT)
        time.sleep(LOOK_SECONDS)  # two signals at once are one; then it takes longer
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130
    assert read(team.runs / "latest/run.json")["outcome"] == "cancelled"
    assert commands_of(tmp_path) == []


def git_that_freezes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a git on PATH that freezes when it is to compare, once; returns what is there when it has."""
    git, once = folder / "bin" / "git", folder / "once"
    git.parent.mkdir()
    freeze = f'[ "$1" = diff-tree ] && mkdir {once} 2>/dev/null && {{ {FREEZE}; }}'
    git.write_text(f'#!/bin/sh\n{freeze}\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    return once


def commands_of(folder: Path) -> list[str]:
    found = []
    for process in processes_of(folder):
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return found
