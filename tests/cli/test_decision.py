"""Answers to a parked or a waiting run, and ``cancel``, which tells the truth about a run's process.

Costs: most of its runs work or wait in processes of their own, where others stop them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from codex_multi_role.cli.main import group
from codex_multi_role.errors import RunBusy
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.run_folder import EventLog, Record, RunFolder
from codex_multi_role.run_folder.owner import Owner, is_alive
from codex_multi_role.run_folder.states import States, written_state
from tests.support.console import DEADLINE_SECONDS, console
from tests.support.preloaded import started
from tests.support.processes import running, wait_for, wait_until_asleep
from tests.support.recorded_runs import make_run
from tests.support.reviews import asked, outcome, reviewed
from tests.support.teams import Record as Keys
from tests.support.teams import TeamFolder, read, say, with_flow
from tests.support.workspaces import commit_all

pytestmark = [pytest.mark.usefixtures("scripted_codex"), pytest.mark.real]

STUCK = """
import sys
import threading
from pathlib import Path
import codex_multi_role.lifecycle.session
import codex_multi_role.cli.main as main
import codex_multi_role.steps.turn as turn

def never(*_, **__):
    Path("stuck").touch()
    threading.Event().wait()

turn.read_reply = never
codex_multi_role.lifecycle.session.STOP_SECONDS = 0.5
main.LEAVING_SECONDS = 0.2
sys.exit(main.main())
"""


@pytest.fixture
def worked_on(tmp_path: Path) -> Iterator[RunFolder]:
    """A run on which this process works."""
    folder = make_run(tmp_path / "runs", "one", status="running", exit_code=None)
    owner = Owner(folder.owner_path)
    owner.acquire()
    yield folder
    owner.release()


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return reviewed(tmp_path)


def run_alone(team: TeamFolder, *more: str) -> subprocess.CompletedProcess[str]:
    """The run's command with nobody there."""
    _, _, _, *arguments = team.command("--flow", "own", *more)
    return console(*arguments, folder=team.folder)


def test_with_nobody_there_a_run_parks_and_says_what_answers_it(team: TeamFolder) -> None:
    done = run_alone(team)
    assert done.returncode == 4
    run_id = (team.runs / "latest").resolve().name
    accept, reject = (
        f"codex-multi-role approve {run_id} --resume",
        f"codex-multi-role reject {run_id} --comment WHY --resume",
    )
    log, summary = done.stderr.split("\n\nWaiting for a person\n")
    assert (log.count("Ship it?"), summary.count("Ship it?")) == (1, 1)
    assert f"  reject   {reject}\n" in done.stderr
    assert f"  next     {accept}\n" in done.stderr
    assert "  exit     4: parked, waiting for a person" in done.stderr

    shown = console("show", "latest", folder=team.folder).stdout.splitlines()
    assert "status     parked: Waiting for a person" in shown
    assert "question   ok.1: Ship it?" in shown
    assert shown[-1] == f"next: {accept}"
    assert "ok.1: Ship it?" in console("runs", folder=team.folder).stdout
    (run,) = json.loads(console("runs", "--json", folder=team.folder).stdout)
    assert run["questions"][0]["key"] == "ok.1"


@pytest.mark.sample("approve", "resume")
def test_approve_then_resume_continues_a_parked_run(team: TeamFolder) -> None:
    run_alone(team)
    approved = console("approve", "--comment", "good", folder=team.folder)
    assert approved.returncode == 0
    first, second = approved.stderr.splitlines()
    assert first.endswith(": ok.1 is approved.")
    assert second.startswith("next: codex-multi-role resume ")
    again = console("reject", "latest", "--comment", "no", folder=team.folder)
    assert again.returncode == 2
    assert "ok.1 was approved by" in again.stderr
    assert console("resume", folder=team.folder).returncode == 0
    assert outcome(team) == ("shipped", 0)


def test_yes_asks_nobody(team: TeamFolder) -> None:
    assert run_alone(team, "--yes").returncode == 0
    assert asked(team)["answer"]["by"] == "--yes"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["approve", "latest"], "the run first is not waiting for an answer"),
        (["reject", "latest"], "Missing option '--comment'"),
        (["reject", "latest", "--comment", " "], "must not be empty"),
        (["approve", "latest", "--question", "ok.1"], 'the run first has no question "ok.1"'),
        (["approve", "second"], 'no run "second"'),
        (["pause", "latest"], "run first is not running (status: ended); nothing to pause"),
    ],
)
def test_invalid_answer_or_cancel_is_reported(tmp_path: Path, arguments: list[str], words: str) -> None:
    make_run(tmp_path / "runs", "first")
    (tmp_path / "runs/latest").unlink()
    (tmp_path / "runs/latest").symlink_to("first")
    done = console(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr


def test_run_that_waits_for_a_person_is_paused_already(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first", status="parked", outcome="waiting_for_review", exit_code=4)
    done = console("pause", "first", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "first: Waiting for a person: it is parked already.\n")


@pytest.mark.long
def test_run_without_terminal_waits_for_answer_from_elsewhere(team: TeamFolder) -> None:
    """This needs the flag --await-answers. No short test answers a run that waits in a process of its own."""
    waits = running(team, "--flow", "own", "--await-answers", until=("review_asked", None))
    with waits as process:
        said = console("approve", "latest", "--comment", "good", folder=team.folder).stderr
        first, second = said.splitlines()
        assert first.endswith(": ok.1 is approved.")
        assert second == "The run continues by itself."
        assert process.wait(60) == 0
    assert outcome(team) == ("shipped", 0)


@pytest.mark.parametrize("name", ["run", "resume", "fork", "approve", "reject", "answer"])
def test_await_answers_is_an_option_of_every_run_command(name: str) -> None:
    """Every command that works on a run can wait for an answer from elsewhere."""
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert "await_answers" in {setting.name for setting in command.params}


@pytest.mark.sample("cancel")
def test_cancel_stops_a_run_that_works_and_it_can_be_resumed(tmp_path: Path) -> None:
    team = reviewed(tmp_path)
    team.plays["one"] = [{"fault": {"stall_seconds": 300}}]
    team.write_plays()
    with running(team, "--flow", "own", until=("turn_started", "one")) as process:
        stopped = console("cancel", folder=team.folder)
        assert stopped.returncode == 0
        assert stopped.stderr.endswith(": Cancelled: the run was stopped\n")
        assert process.wait(30) == 130
    again = console("cancel", "latest", folder=team.folder)
    assert (again.returncode, again.stderr) == (0, stopped.stderr)
    team.plays["one"] = [say("it")]
    team.write_plays()
    assert team.resume(playbook=str(team.playbook), yes=True).outcome == "approved"


@pytest.fixture
def unreviewed(tmp_path: Path) -> TeamFolder:
    return TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})


def stuck(team: TeamFolder) -> subprocess.Popen[str]:
    """A run whose work no signal can interrupt."""
    command = [sys.executable, "-c", STUCK, *team.command("--quiet")[3:]]
    process = started(command, cwd=team.folder)
    wait_for(team.folder / "stuck")
    return process


@pytest.fixture
def ended() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are gone after the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for each in processes:
        each.kill()
        each.wait()


def test_cancelled_run_process_ends_despite_stuck_work(
    unreviewed: TeamFolder, ended: list[subprocess.Popen[str]]
) -> None:
    """The work of the run cannot be interrupted by any signal."""
    ended.append(stuck(unreviewed))
    cancelled = console("cancel", "latest", folder=unreviewed.folder)
    assert (cancelled.returncode, cancelled.stdout) == (0, "")
    assert ended[0].wait(DEADLINE_SECONDS) == 130  # its lock goes a moment before its process does
    assert read(unreviewed.runs / "latest/run.json")["status"] == "interrupted"


def test_run_still_working_is_not_reported_as_cancelled(worked_on: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process does not look for requests, and its work continues."""
    for name in ("HURRY_SECONDS", "STUCK_SECONDS"):
        monkeypatch.setattr(f"codex_multi_role.lifecycle.stopping.{name}", 0.1)
    with pytest.raises(RunBusy, match="is still working on run") as refused:
        stop_run(worked_on)
    assert refused.value.hint.startswith(f"`kill -9 {os.getpid()}`")
    assert is_alive(worked_on)


@pytest.mark.sample("pause")
@pytest.mark.parametrize(("command", "code", "outcome"), [("cancel", 130, "cancelled"), ("pause", 4, "paused")])
def test_runs_of_one_program_stop_alone(tmp_path: Path, command: str, code: int, outcome: str) -> None:
    """On threads of another program, which lives on, as the other run does."""
    slow = [{**say(), "delay_seconds": 1.0}] * 2
    teams = [TeamFolder(tmp_path / name, {"one": {}}, {"one": slow}) for name in ("a", "b")]
    with ThreadPoolExecutor() as pool:
        reports = [pool.submit(team.run, cycles=2) for team in teams]
        for team in teams:
            wait_for(team.runs / "latest/one/turn_001/turn.json")
        told = CliRunner().invoke(group, [command, "latest", "--runs-dir", str(teams[0].runs)])
        assert told.exit_code == 0
        stopped, other = (each.result(DEADLINE_SECONDS) for each in reports)
    assert (stopped.exit_code, stopped.outcome) == (code, outcome)
    assert (other.exit_code, other.outcome) == (1, "cycles_used_up")


HANGING_SECONDS = 97
COMMAND: Keys = {"id": "hangs", "check": "command", "with": {"argv": ["sleep", f"{HANGING_SECONDS}"]}}
PLACES: dict[str, Keys] = {
    "setup": {"steps": [{"ask": "one"}], "workspace": {"setup": f"sleep {HANGING_SECONDS}"}},
    "check": {"steps": [COMMAND]},
    "check in a called flow": {"steps": [{"call": "inner"}]},
    "check of an item": {"steps": [{**COMMAND, "for_each": [1, 2]}]},
    "finally": {"steps": [{"check": "command", "with": {"argv": ["true"]}}], "finally": [COMMAND]},
}


@pytest.mark.parametrize("place", PLACES)
def test_run_on_a_thread_stops_wherever_it_waits(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codex_multi_role.lifecycle.stopping.HURRY_SECONDS", 0.5)
    team = TeamFolder(tmp_path, {"one": {}}, {"one": [say()]})
    with_flow(with_flow(team, {"steps": [COMMAND]}, "inner"), PLACES[place])
    (team.workspace / "code.py").write_text("one = 1\n")
    commit_all(team.workspace)
    with ThreadPoolExecutor() as pool:
        report = pool.submit(team.run, flow="own", worktree=place == "setup")
        wait_until_asleep(HANGING_SECONDS)
        told = CliRunner().invoke(group, ["cancel", "latest", "--runs-dir", str(team.runs)])
        stopped = report.result(DEADLINE_SECONDS)
    outcome = "finally_failed" if place == "finally" else "cancelled"  # a check of an end that was reached before
    assert (told.exit_code, stopped.outcome) == (0, outcome), told.output


def test_cancel_reports_a_task_once_its_states_file_is_written(worked_on: RunFolder) -> None:
    events = EventLog(worked_on.events_path, worked_on.redact)
    reported = threading.Event()

    def delay_the_file(records: Sequence[Record]) -> None:
        if records[0]["state"] == "SKIPPED":
            reported.wait(0.5)

    events.keep(delay_the_file)
    states = States(worked_on, events)
    states.begin({"solve.1.0": ("A", "")})
    states.move("solve.1.0", "A", "IN_PROGRESS")

    def skip_once_cancelled() -> None:
        wait_for(worked_on.path / "cancelled/solve.1.0.json")
        states.move("solve.1.0", "A", "SKIPPED")

    with ThreadPoolExecutor() as worker:
        skipping = worker.submit(skip_once_cancelled)
        done = console("cancel", "one", "--task", "A", folder=worked_on.path.parents[1])
        written = written_state(worked_on, "solve.1.0")
        reported.set()
        skipping.result()
    assert (done.stderr, written) == ("task A: SKIPPED\n", "SKIPPED")
    events.close()
