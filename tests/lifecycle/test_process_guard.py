"""What a run started ends when the run's process is killed, without anybody resuming it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from codex_multi_role.host.processes import Family
from codex_multi_role.lifecycle.process_guard import PART
from tests.support.leftovers import wait_until_gone
from tests.support.processes import DAY, FREE, hiding, running, sleeping, wait_for, wait_until_asleep
from tests.support.teams import NEVER, Record, TeamFolder, say

pytestmark = pytest.mark.real

FILES = [{"path": "new.txt", "content": "x"}]
GONE_SECONDS = 30.0
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
HANGING_TEST = """
import subprocess
from pathlib import Path


def test_hangs():
    subprocess.Popen(["setsid", "env", "-i", "sleep", "{seconds}"])
    Path("begun").touch()
    subprocess.run(["sleep", "{seconds}"])
"""


@contextmanager
def hanging_tests(team: TeamFolder, seconds: int, *more: str) -> Iterator[psutil.Process]:
    """The process of a run whose test hangs."""
    (team.workspace / "test_it.py").write_text(HANGING_TEST.format(seconds=seconds))
    process = team.start("--run-tests", "--pytest-cmd", PYTEST, *more)
    try:
        wait_for(team.workspace / "begun")
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.communicate()


def test_killed_run_leaves_no_test_running(tmp_path: Path) -> None:
    """Not even what the test started in a session of its own, without a variable of ours."""
    seconds = DAY + 10
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"apply_files": True}}}, {"one": [say(files=FILES)]})
    with hanging_tests(team, seconds, "--no-test-sandbox") as process:
        wait_until_asleep(seconds)
        process.kill()
        assert wait_until_gone(tmp_path, GONE_SECONDS) == []
    assert sleeping(seconds) == []


def test_killed_run_leaves_no_command_of_a_role_running(tmp_path: Path) -> None:
    seconds = DAY + 12
    call = {"call": "exec_command", "arguments": {"cmd": hiding(seconds)}}
    plays: dict[str, list[Record]] = {"one": [{"steps": [call, say()]}], "two": [NEVER]}
    team = TeamFolder(tmp_path, {"one": FREE, "two": {}}, plays)
    with running(team, until=("turn_started", "two")) as process:
        wait_until_asleep(seconds)
        process.kill()
        assert wait_until_gone(tmp_path, GONE_SECONDS) == []
    assert sleeping(seconds) == []


@pytest.mark.long
def test_resumed_run_is_out_of_reach_of_the_guard_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frozen while it was about to act, it would otherwise end the processes of the next session.

    No short test freezes a guard.
    """
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.2)
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [NEVER]})
    with running(team, until=("turn_started", "one")) as process:
        run_folder = next(team.runs.glob("2*"))
        [guard] = Family.of_run(run_folder, PART).members()
        guard.suspend()
        process.kill()
    team.write_plays(one=[say()])
    assert team.resume(playbook=str(team.playbook)).outcome == "cycles_used_up"
    assert not guard.is_running() or guard.status() == psutil.STATUS_ZOMBIE
