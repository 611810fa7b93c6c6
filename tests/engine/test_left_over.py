"""The processes of a run: never more than it may have, and none outlives it, wherever it hides, deaf or frozen.

Costs: real Codex processes, and commands that are left running, killed or frozen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from codex_multi_role import RunReport, run
from codex_multi_role.host.processes import Family, lives
from codex_multi_role.lifecycle.process_guard import PART
from tests.support.leftovers import processes_of
from tests.support.processes import DAY, FREE, hiding, interrupted, running, sleeping, wait_until_asleep
from tests.support.teams import ECHO, NEVER, Record, TeamFolder, fan, read, say, solver, with_flow
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
    team.write_plays(two=[say()])
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


LOOK_SECONDS = 0.05


def app_servers() -> int:
    """How many Codex processes of this one are alive."""
    found = 0
    for child in psutil.Process().children():
        try:
            found += child.status() != psutil.STATUS_ZOMBIE and "app-server" in child.cmdline()
        except psutil.NoSuchProcess:
            continue
    return found


@dataclass
class Counter:
    """Looks all the time while a run works."""

    most: int = 0
    events: list[Record] = field(default_factory=list)

    def run(self, team: TeamFolder, **changes: object) -> RunReport:
        over = threading.Event()
        looking = threading.Thread(target=self._look, args=(over,))
        looking.start()
        try:
            return run(team.options(flow="own", **changes), self.events.append)
        finally:
            over.set()
            looking.join()

    def _look(self, over: threading.Event) -> None:
        while not over.wait(LOOK_SECONDS):
            self.most = max(self.most, app_servers())


def turns(report: RunReport) -> dict[str, list[Record]]:
    """By instance, the ``turn.json`` files of a run."""
    found: dict[str, list[Record]] = {}
    for path in sorted(report.folder.glob("*/turn_*/turn.json")):
        found.setdefault(path.parts[-3], []).append(read(path))
    return found


def test_six_parallel_items_share_two_processes(tmp_path: Path) -> None:
    """Their results are in item order, and every item has its own thread."""
    letters = list("abcdef")
    in_order = f"steps.solve.results | map(attribute='summary') | list == {[f'did {each}' for each in letters]}"
    end = [{"when": in_order, "end": "in_order"}, {"end": "no"}]
    counter = Counter()
    report = counter.run(solver(tmp_path, [fan(letters, concurrency=6, next=end)]), max_processes=2)
    assert report.outcome == "in_order", report
    assert counter.most == 2
    assert read(report.folder / "run.json")["options"]["max_processes"] == 2
    assert len({turn["thread_id"] for each in turns(report).values() for turn in each}) == len(letters)


def test_two_roles_sharing_one_process_remember_conversations(tmp_path: Path) -> None:
    again = [{"when": "steps.one.visits < 2", "to": "one"}]
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, {name: [say("x" * 4000)] * 2 for name in ("one", "two")})
    with_flow(team, {"steps": [{"ask": "one"}, {"ask": "two", "next": again}]})
    counter = Counter()
    report = counter.run(team, max_processes=1)
    assert report.outcome == "success", report
    assert counter.most == 1
    by_role = turns(report)
    assert [len({turn["thread_id"] for turn in by_role[role]}) for role in ("one", "two")] == [1, 1]
    started = [event["resumed"] for event in counter.events if event["type"] == "role_started"]
    assert started.count(True) == 2
    assert not [event for event in counter.events if event["type"] == "role_restarted"]
    for role in ("one", "two"):  # the model is sent all that was said before
        first, second = (turn["tokens"]["input"] for turn in by_role[role])
        assert second > first + 1000


@pytest.mark.usefixtures("scripted_codex")
def test_calls_within_a_fan_out_do_not_lock_each_other_out(tmp_path: Path) -> None:
    team = solver(
        tmp_path, [{"id": "outer", "call": "inner", "for_each": {"items": [1, 2], "concurrency": 2}}], [say()] * 20
    )
    parts = {
        "id": "parts",
        "ask": "solver",
        "prompt": "P {{ item }}",
        "for_each": {"items": ["x", "y"], "concurrency": 2},
    }
    with_flow(team, {"steps": [parts, {"ask": "last"}]}, "inner")
    report = team.run(flow="own", max_processes=1)
    assert (report.outcome, report.totals["turns"]) == ("success", 2 * (2 + 1)), report


@pytest.mark.usefixtures("scripted_codex")
def test_ctrl_c_ends_a_run_whose_turns_wait_for_a_process(tmp_path: Path) -> None:
    """It may be resumed with more processes."""
    team = solver(tmp_path, [fan(list("abc"), concurrency=3)], [{**say(), "delay_seconds": 300}] * 3)
    assert interrupted(team, ("turn_started", "solver"), flow="own", max_processes=1).exit_code == 130
    team.write_plays(solver=[ECHO] * 9)
    report = team.resume(playbook=str(team.playbook), max_processes=2)
    assert (report.outcome, len(team.turns())) == ("success", 3)
    assert read(report.folder / "run.json")["options"]["max_processes"] == 2
