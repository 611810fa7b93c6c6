"""A run that stopped continues after its last recorded turn, whatever stopped it.

Costs: each case is a run that is stopped and resumed, some of them killed with the real binary.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from codex_multi_role import run
from codex_multi_role.lifecycle.stopping import pause_run
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive
from tests.support.processes import LOOK_SECONDS, interrupted, running, wait_for
from tests.support.teams import NEVER, Record, TeamFolder, read, say
from tests.support.workspaces import files_of

pytestmark = pytest.mark.usefixtures("scripted_codex")


def team_of(folder: Path, second: Record, *more: str) -> TeamFolder:
    """The roles ``one``, ``two``, which plays ``second``, and ``more``."""
    plays = {"one": [say("first")], "two": [second], **{name: [say("third")] for name in more}}
    return TeamFolder(folder, {name: {} for name in plays}, plays)


def wait_for_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive


def finish(team: TeamFolder) -> None:
    """Let role two answer, resume, and see that only what was missing was asked."""
    team.write_plays(two=[say("second")])
    report = team.resume(playbook=str(team.playbook))
    assert report.outcome == "cycles_used_up"
    names = list(team.roles)
    assert [turn[0] for turn in team.turns()] == names[1:]
    state = read(report.folder / "controller_state.json")
    assert [entry["role"] for entry in state["history"]] == names
    assert "first" in sorted((report.folder / "two").glob("turn_*"))[-1].joinpath("prompt.txt").read_text()


def test_journal_write_error_at_start_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found with a disk that was full at exactly this write."""
    team = team_of(tmp_path, say("second"))

    def full(_: Path) -> sqlite3.Connection:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("codex_multi_role.engine.journal_file._opened", full)
        report = team.run()
    assert (report.outcome, report.exit_code) == ("storage_failed", 3)
    assert report.reason.endswith(": database or disk is full")
    assert team.resume().outcome == "cycles_used_up"


PATCHER: Record = {"prompt_flags": {"allow_write": True}}
APPEND = "*** Begin Patch\n*** Update File: log.txt\n@@\n first\n+{line}\n*** End Patch"


def appends(line: str, *then: Record) -> Record:
    return {"steps": [{"patch": APPEND.format(line=line)}, *then]}


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_after_kill_nine_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """Its partial work is undone and kept as a patch; the endurance tests found a line in the file twice.

    A pause that was requested before the kill was meant for that session: the resumed one continues.
    """
    team = team_of(tmp_path, appends("once", {"text": "x", "delay_seconds": 300}), "three")
    team.write_catalog(two=PATCHER)
    log = team.workspace / "log.txt"
    log.write_text("first\n")
    with running(team, until=("role_activity", "two")) as process:
        for _ in range(200):
            if "once" in log.read_text():
                break
            threading.Event().wait(0.05)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 3
        pause_run(RunFolder(team.runs / "latest"))
        process.kill()
    wait_for_end(below)
    assert log.read_text() == "first\nonce\n"
    finish(team)
    assert log.read_text() == "first\n"
    assert "+once" in (team.runs / "latest/two/turn_001/undone.patch").read_text()
    killed = read(team.runs / "latest/two/turn_001/turn.json")
    assert (killed["status"], killed["outcome"]) == ("interrupted", "killed")
    assert killed["tokens"]["input"] > 0  # of its first request


OTHER_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@pytest.mark.parametrize("number", OTHER_SIGNALS)
def test_every_stop_signal_interrupts_a_run(tmp_path: Path, number: int) -> None:
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [NEVER]})
    report = interrupted(team, ("turn_started", "one"), number)
    assert (report.status, report.exit_code) == ("interrupted", 130)


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_processes_that_do_not_react_are_no_reason_to_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.codex.child.GRACE_SECONDS", 0.3)
    monkeypatch.setattr("codex_multi_role.host.processes.GRACE_SECONDS", 0.3)
    team = team_of(tmp_path, NEVER)
    others = set(psutil.Process().children(recursive=True))
    below: list[psutil.Process] = []

    def freeze(event: Record) -> None:
        if (event["type"], event.get("role")) == ("turn_started", "two") and not below:
            below.extend(set(psutil.Process().children(recursive=True)) - others)
            for each in below:
                each.suspend()
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(LOOK_SECONDS)  # two signals at once are one

    assert run(team.options(), freeze).exit_code == 130
    assert len(below) >= 3
    assert not [each for each in below if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert read(team.runs / "latest/run.json")["status"] == "interrupted"
    assert read(team.runs / "latest/two/turn_001/turn.json")["status"] == "interrupted"
    finish(team)


def test_after_used_up_cycles_with_more_of_them(tmp_path: Path) -> None:
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two")}
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, plays)
    assert team.run().outcome == "cycles_used_up"
    report = team.resume(cycles=2)
    assert report.outcome == "cycles_used_up"
    assert [turn[:2] for turn in team.turns()] == [("one", 2), ("two", 2)]
    assert [event["resumed"] for event in team.of_type("role_started")] == [True, True]
    assert '"summary": "two 1"' in (report.folder / "one/turn_002/prompt.txt").read_text()
    with closing(sqlite3.connect(report.folder / "journal.sqlite")) as journal:
        assert journal.execute("SELECT count(*) FROM steps").fetchone() == (4,)  # a row per turn


@pytest.mark.parametrize("status", ["DONE", "CONTINUE"])
def test_finished_run_starts_nothing(tmp_path: Path, status: str) -> None:
    """It is reported as it ended, whether or not it reached its goal."""
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status=status)]})
    ended = team.run()
    before = files_of(ended.folder)
    report = team.resume(cycles=1)  # as before
    assert replace(report, hint=ended.hint) == ended
    assert "nothing was started" in report.hint
    assert files_of(ended.folder) == before
    (ended.folder / "report.html").unlink(missing_ok=True)  # as if it was killed before it wrote that
    assert team.resume().page == ended.page
    assert files_of(ended.folder).keys() == before.keys()


def test_run_killed_after_its_flow_ended_is_closed(tmp_path: Path) -> None:
    team = TeamFolder(tmp_path, {"one": {"behaviors": {"can_finish": True}}}, {"one": [say(status="DONE")]})
    folder = RunFolder(team.run().folder)
    folder.owner_path.write_text('{"pid": 1, "start_time": 0}')  # as its process left it
    report = team.resume()
    assert (report.outcome, report.exit_code, team.turns()) == ("done", 0, [])
    assert [event["status"] for event in team.of_type("run_ended")] == ["succeeded"]


def test_repair_turn_is_not_asked_for_twice(tmp_path: Path) -> None:
    plays: dict[str, list[Record]] = {
        "one": [{"text": "no", "repairs": [say("first")]}],
        "two": [{"fault": {"status": 400}}],
    }
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, plays)
    assert team.run().exit_code == 3
    finish(team)


def test_role_with_lost_codex_thread_receives_its_handoffs(tmp_path: Path) -> None:
    """The resumed run repeats the role's own handoffs in the prompt."""
    plays = {name: [say(f"{name} {cycle}") for cycle in (1, 2)] for name in ("one", "two")}
    team = TeamFolder(tmp_path, {"one": {}, "two": {}}, plays)
    folder = team.run().folder
    for rollout in (folder / ".codex/one").rglob("rollout-*"):
        rollout.unlink()
    for database in (folder / ".codex/one").glob("*.sqlite*"):
        database.unlink()
    report = team.resume(cycles=2)
    assert report.outcome == "cycles_used_up"
    assert '"summary": "one 1"' in (folder / "one/turn_002/prompt.txt").read_text()
    assert '"summary": "two 1"' not in (folder / "two/turn_002/prompt.txt").read_text()


def test_lock_is_released_even_if_the_end_of_processes_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a program that continues, nobody else could resume the run."""
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    folder = team.run().folder

    def fails(_: object) -> set[psutil.Process]:
        raise psutil.AccessDenied

    monkeypatch.setattr("codex_multi_role.host.processes.processes_below", fails)
    with pytest.raises(psutil.AccessDenied):
        team.resume(cycles=2)
    assert not is_alive(RunFolder(folder))


def test_roles_of_a_resumed_run_are_those_it_was_started_with(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"fault": {"status": 400}})
    team.run()
    (tmp_path / "roles/catalog.yaml").write_text("gone: wrong\n")
    finish(team)


ADD = "*** Begin Patch\n*** Add File: {name}\n+new\n*** End Patch"


@pytest.mark.long
def test_what_another_one_finished_meanwhile_is_not_undone(tmp_path: Path) -> None:
    """No short test undoes an interrupted turn beside one that has finished since."""
    roles: dict[str, Record] = {"quick": PATCHER, "slow": PATCHER, "last": {"depends_on": ["quick", "slow"]}}
    quick = {"steps": [{"patch": ADD.format(name="quick.txt"), "delay_seconds": 0.3}, say()]}
    slow = {"steps": [{"patch": ADD.format(name="slow.txt")}, {"text": "x", "delay_seconds": 300}]}
    team = TeamFolder(tmp_path, roles, {"quick": [quick], "slow": [slow], "last": [say()]})
    with running(team, until=("turn_ended", "quick")) as process:
        below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    wait_for_end(below)
    team.write_plays(slow=[say()])
    assert team.resume(playbook=str(team.playbook)).outcome == "cycles_used_up"
    assert (team.workspace / "quick.txt").read_text() == "new\n"
    assert any("other roles also changed the workspace" in event["message"] for event in team.of_type("warning"))


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_provider_retry_begins_with_the_workspace_as_it_was(tmp_path: Path) -> None:
    attempts = [appends("once", {"fault": {"status": 500}}), appends("once", say())]
    team = TeamFolder(tmp_path, {"patcher": PATCHER}, {"patcher": [{"attempts": attempts}]})
    (team.workspace / "log.txt").write_text("first\n")
    assert team.run().outcome == "cycles_used_up"
    assert (team.workspace / "log.txt").read_text() == "first\nonce\n"


def test_finished_turn_missing_in_journal_is_not_repeated(tmp_path: Path) -> None:
    """The process stopped after the turn ended and before the journal was written."""
    team = team_of(tmp_path, say("second"), "three")
    events: list[Record] = []

    def stop_at_the_end_of_two(event: Record) -> None:
        events.append(event)
        if (event["type"], event.get("role")) == ("turn_ended", "two"):
            raise OSError("the machine goes down before the journal is written")

    report = run(team.options(), stop_at_the_end_of_two)
    assert report.exit_code == 3
    assert team.resume().outcome == "cycles_used_up"
    assert [turn[0] for turn in team.turns()] == ["three"]
    assert [entry["role"] for entry in read(report.folder / "controller_state.json")["history"]] == [
        "one",
        "two",
        "three",
    ]


@pytest.mark.real
@pytest.mark.usefixtures("real_codex")
def test_command_cut_short_leaves_no_mount_points_of_its_sandbox(tmp_path: Path) -> None:
    sleeping = {"steps": [{"call": "exec_command", "arguments": {"cmd": "sleep 300", "yield_time_ms": 60_000}}, say()]}
    team = TeamFolder(tmp_path, {"one": {**PATCHER, "prompt_flags": {"allow_write": True}}}, {"one": [sleeping]})

    def stop(event: Record) -> None:
        if event["type"] == "role_activity":
            wait_for(team.workspace / ".codex")
            os.kill(os.getpid(), signal.SIGINT)

    assert run(team.options(), stop).exit_code == 130
    assert list(team.workspace.iterdir()) == []
