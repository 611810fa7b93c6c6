"""No process that a run started outlives it, wherever it hides, deaf or frozen, and however the run ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from codex_multi_role.host.processes import Family, lives
from codex_multi_role.lifecycle.process_guard import PART
from tests.support.leftovers import processes_of
from tests.support.processes import DAY, FREE, hiding, running, sleeping, wait_until_asleep
from tests.support.teams import NEVER, Record, TeamFolder, say
from tests.support.tools import command

pytestmark = pytest.mark.real


def test_what_a_roles_command_left_running_ends_with_the_run(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": FREE}, {"one": [{"steps": [command(hiding(DAY)), say()]}]})
    assert team.run().outcome == "cycles_used_up"
    assert sleeping(DAY) == []


def test_what_a_killed_run_left_ends_when_it_is_resumed(tmp_path: Path) -> None:
    """Where its guard was killed, too."""
    number = DAY + 1
    plays: dict[str, list[Record]] = {"one": [{"steps": [command(hiding(number)), say()]}], "two": [NEVER]}
    team = TeamFolder(tmp_path, {"one": FREE, "two": {}}, plays)
    with running(team, until=("turn_started", "two")) as process:
        wait_until_asleep(number)
        Family.of_run(next(team.runs.glob("2*")), PART).kill()
        process.kill()
    assert len(sleeping(number)) == 1
    team.plays["two"] = [say()]
    team.write_plays()
    assert team.resume(playbook=str(team.playbook)).outcome == "cycles_used_up"
    assert sleeping(number) == []
    assert any("they were stopped" in event["message"] for event in team.of_type("warning"))


def test_unmarked_process_ends_with_run(tmp_path: Path) -> None:
    """For example git, which does not get our variables. Processes that existed before are left alone."""
    with subprocess.Popen(["sleep", "86515"]) as stranger:
        family = Family.of_run(tmp_path)
        with family.at_work(), subprocess.Popen(["sleep", "86516"], start_new_session=True) as ours:
            ours.send_signal(signal.SIGSTOP)
            family.kill()
            assert ours.wait(10) == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()


def test_unmarked_process_is_nobodys_while_two_runs_are_at_work(tmp_path: Path) -> None:
    """The runs of a program may be on its main thread and on others."""
    one, two = (Family.of_run(tmp_path / name) for name in "ab")
    with one.at_work(), two.at_work(), subprocess.Popen(["sleep", "86519"]) as unknown:
        assert one.end() == two.end() == 0
        assert unknown.poll() is None
        unknown.kill()


def test_what_a_child_from_before_starts_is_left_alone(tmp_path: Path) -> None:
    """Such as a database server of the program that runs us: it starts a process for each connection."""
    with subprocess.Popen(["sh", "-c", "read go; sleep 86518 & echo $!; wait"], stdin=-1, stdout=-1) as server:
        assert server.stdin
        assert server.stdout
        family = Family.of_run(tmp_path)
        with family.at_work():
            server.stdin.write(b"go\n")
            server.stdin.flush()
            worker = psutil.Process(int(server.stdout.readline()))
            ended, is_alive = family.end(), lives(worker)
        server.kill()
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()
    assert (ended, is_alive) == (0, True)


def test_others_processes_are_left_alone(tmp_path: Path) -> None:
    """Such as those of a run whose id begins with that of this one."""
    stranger = os.posix_spawnp("sleep", ["sleep", "86514"], {"CODEX_MULTI_ROLE_RUN": f"{tmp_path}/it-2"})
    try:
        Family.of_run(tmp_path / "it").end()
        assert psutil.Process(stranger).status() != psutil.STATUS_ZOMBIE
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


FREEZE = "trap '' TERM; kill -STOP $$"


@pytest.mark.parametrize(
    ("role", "command"),
    [
        ({}, FREEZE),
        (FREE, f'setsid -f sh -c "{FREEZE.replace("$", chr(92) + "$")}"'),
    ],
)
def test_tool_command_that_freezes_does_not_outlive_the_run(
    tmp_path: Path, role: dict[str, object], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)
    call = {"call": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 250}}
    team = TeamFolder(tmp_path, {"one": role}, {"one": [{"steps": [call, say()]}]})
    assert team.run().outcome == "cycles_used_up"
    assert commands_of(tmp_path) == []


def commands_of(folder: Path) -> list[str]:
    found = []
    for process in processes_of(folder):
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return found
